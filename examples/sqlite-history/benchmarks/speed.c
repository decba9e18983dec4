/* What an application asks of SQLite: rows to insert, look up, join, sort and search, and JSON to take apart.
 *
 * Each work has a database of its own in memory, filled with the same numbers each time. */
#include <stdio.h>
#include <string.h>
#include "../sqlite3.h"

static sqlite3 *db;

static void fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, sqlite3_errmsg(db));
    _Exit(1);
}

static void run(const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail(sql);
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail(sql);
    return statement;
}

/* Executes it to the end, reads the first column of all rows, and returns how many there were. */
static long step(sqlite3_stmt *statement)
{
    long rows = 0;
    int state;
    while ((state = sqlite3_step(statement)) == SQLITE_ROW) {
        sqlite3_column_text(statement, 0);
        rows++;
    }
    if (state != SQLITE_DONE)
        fail(sqlite3_sql(statement));
    sqlite3_reset(statement);
    return rows;
}

static long query(const char *sql)
{
    sqlite3_stmt *statement = prepare(sql);
    long rows = step(statement);
    sqlite3_finalize(statement);
    return rows;
}

static unsigned random_number(void)
{
    static unsigned state = 1;
    state = state * 1103515245u + 12345u;
    return state >> 8;
}

/* Writes a number in words, so that texts have a length and an order that differ. */
static void words(unsigned number, char *text)
{
    static const char *digits[] = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
    *text = '\0';
    for (number %= 100000; number; number /= 10)
        strcat(strcat(text, digits[number % 10]), " ");
}

static long fill(int rows)
{
    char text[64];
    run("CREATE TABLE item (id INTEGER PRIMARY KEY, kind INTEGER, price REAL, name TEXT);"
        "CREATE INDEX item_kind ON item (kind, price); BEGIN");
    sqlite3_stmt *statement = prepare("INSERT INTO item VALUES (?, ?, ?, ?)");
    for (int id = 1; id <= rows; id++) {
        words(random_number(), text);
        sqlite3_bind_int(statement, 1, id);
        sqlite3_bind_int(statement, 2, random_number() % 500);
        sqlite3_bind_double(statement, 3, random_number() % 10000 / 100.0);
        sqlite3_bind_text(statement, 4, text, -1, SQLITE_TRANSIENT);
        step(statement);
    }
    sqlite3_finalize(statement);
    run("COMMIT");
    return rows;
}

static long insert(void)
{
    fill(20000);
    run("UPDATE item SET price = price * 1.1 WHERE kind < 250; DELETE FROM item WHERE id % 7 = 0");
    return query("SELECT id FROM item");
}

static long lookup(void)
{
    long found = 0;
    int rows = fill(3000);
    sqlite3_stmt *by_id = prepare("SELECT name FROM item WHERE id = ?");
    sqlite3_stmt *by_kind = prepare("SELECT name FROM item WHERE kind = ? AND price > 50");
    for (int number = 0; number < 20000; number++) {
        sqlite3_bind_int(by_id, 1, random_number() % rows);
        sqlite3_bind_int(by_kind, 1, random_number() % 500);
        found += step(by_id) + step(by_kind);
    }
    sqlite3_finalize(by_id);
    sqlite3_finalize(by_kind);
    return found;
}

static long join(void)
{
    fill(6000);
    run("CREATE TABLE kind (id INTEGER PRIMARY KEY, label TEXT);"
        "INSERT INTO kind SELECT DISTINCT kind, 'kind ' || kind FROM item");
    return query("SELECT a.name, b.name, label FROM item a JOIN kind ON kind.id = a.kind"
                 " JOIN item b ON b.kind = a.kind AND b.price > a.price WHERE a.id <> b.id")
        + query("SELECT label, count(*), avg(price) FROM item JOIN kind ON kind.id = kind GROUP BY label HAVING count(*) > 2")
        + query("SELECT name FROM item WHERE kind IN (SELECT kind FROM item WHERE price > 99)"
                " AND NOT EXISTS (SELECT 1 FROM item other WHERE other.kind = item.kind AND other.price > item.price)");
}

static long sort(void)
{
    fill(12000);
    return query("SELECT name FROM item ORDER BY name DESC, price")
        + query("SELECT id FROM item ORDER BY price * kind")
        + query("SELECT DISTINCT substr(name, 1, 8) FROM item")
        + query("SELECT name, rank() OVER (PARTITION BY kind ORDER BY name) FROM item WHERE kind < 50");
}

static long like(void)
{
    fill(12000);
    return query("SELECT id FROM item WHERE name LIKE '%four%two%'")
        + query("SELECT id FROM item WHERE name LIKE 'SEVEN%'")
        + query("SELECT id FROM item WHERE name GLOB '*[st]even*e ?ine*'")
        + query("SELECT upper(replace(name, 'one', 'eins')) FROM item WHERE instr(name, 'one') > 0");
}

static long json(void)
{
    fill(6000);
    run("CREATE TABLE document AS SELECT id, json_object('id', id, 'name', name, 'prices', json_array(price, price * 2),"
        " 'nested', json_object('kind', kind)) AS body FROM item");
    return query("SELECT json_extract(body, '$.name') FROM document WHERE json_extract(body, '$.nested.kind') < 250")
        + query("SELECT value FROM document, json_each(body, '$.prices') WHERE value > 50")
        + query("SELECT json_set(body, '$.nested.seen', 1) FROM document")
        + query("SELECT json_group_array(id) FROM item GROUP BY kind");
}

static const struct {
    const char *name;
    long (*work)(void);
} works[] = {{"insert", insert}, {"lookup", lookup}, {"join", join}, {"sort", sort}, {"like", like}, {"json", json}};

int main(int argc, char **argv)
{
    for (size_t number = 0; argc == 2 && number < sizeof works / sizeof *works; number++)
        if (strcmp(argv[1], works[number].name) == 0) {
            if (sqlite3_open(":memory:", &db) != SQLITE_OK)
                fail("open");
            printf("SQLite %s, %s: %ld rows\n", sqlite3_libversion(), argv[1], works[number].work());
            sqlite3_close(db);
            return 0;
        }
    fprintf(stderr, "usage: speed insert|lookup|join|sort|like|json\n");
    return 2;
}
