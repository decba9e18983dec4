"""History in a database: SQLite or PostgreSQL, through SQLAlchemy Core, which is optional: importing this may fail."""
