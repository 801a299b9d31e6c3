"""The Model Context Protocol: tools and resources for agents, each a request to the REST API.

tools.py is the table of tools, requests.py the requests to the API. server.py and documents.py, which has the
resources, use the protocol's library, which is 18 MB: import them at first use.
"""
