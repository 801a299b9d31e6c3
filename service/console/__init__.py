"""The console: pages in the browser that show and change what is remembered, over the public API alone."""
