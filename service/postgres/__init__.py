"""The database: connections, transactions, walls, schema and migrations."""
