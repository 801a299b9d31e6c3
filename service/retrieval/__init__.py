"""How is a question answered from memory?"""
