"""Goals, procedures, working memory and profiles over HTTP."""
