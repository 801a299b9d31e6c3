"""Proofs of what is deployed: the manifests, the image and the compose file."""
