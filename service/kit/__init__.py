"""Small parts that know no capability: settings, deadlines, admission."""
