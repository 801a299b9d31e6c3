"""The Model Context Protocol: tools, resources and prompts for agents, each a request to the REST API.

tools.py is the table of tools, requests.py the requests to the API, documents.py resources and prompts. Only server.py
uses the protocol's library, which is 18 MB: import it at first use.
"""
