"""The Model Context Protocol: tools, resources and prompts for agents, each a request to the REST API.

tools.py is the table of tools, requests.py what all of it sends, documents.py resources and prompts. server.py alone
knows the protocol's library, which is 18 MB: import it when it is used first.
"""
