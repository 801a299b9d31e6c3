"""The Model Context Protocol: tools and resources for agents, each a request to the REST API.

tools.py is the table of tools, requests.py the requests to the API. server.py, which has the resources,
uses the protocol's library, which is 18 MB: import it at first use.
"""
