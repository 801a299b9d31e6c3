"""Jobs over HTTP: listed, started, tried again and cancelled."""
