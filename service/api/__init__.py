"""How does HTTP map onto the verbs? Parse, call one verb, shape the reply."""
