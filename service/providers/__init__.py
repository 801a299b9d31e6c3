"""How do we talk to models? The only package that knows embedders and LLMs."""
