/* Programs in C, each in a few lines: what `python -m benchmarks.truth measure` compiles at two levels. */
#include "harness.h"
#include <bzlib.h>
#include <lzma.h>
#include <math.h>
#include <sqlite3.h>
#include <zlib.h>

static long n;
static int32_t *numbers, *scratch;
static unsigned char *text, *packed;
static size_t packed_size;
static double *A, *B, *C;

static void fill(long size)
{
    n = size, numbers = get(4 * size), scratch = get(4 * size);
    for (long i = 0; i < size; i++)
        numbers[i] = any();
}
static void fill_sorted(long size)
{
    fill(size);
    for (long i = 0; i < size; i++)
        numbers[i] = 3 * i;
}
static void write_text(long size) /* words of a made-up language, of which few are frequent */
{
    n = size, text = get(size + 64), packed = get(2 * size + 1024);
    for (long i = 0; i < size;) {
        uint32_t word = any() % (1 + any() % 2000), letters = 2 + word % 7;
        for (uint32_t k = 0; k < letters && i < size; k++, word = word * 31 + 7)
            text[i++] = 'a' + word % 26;
        if (i < size)
            text[i++] = any() % 12 ? ' ' : '\n';
    }
}
static void fill_reals(long size)
{
    n = size, A = get(8 * size * size), B = get(8 * size * size), C = get(8 * size * size);
    for (long i = 0; i < size * size; i++)
        A[i] = any() / 1e7, B[i] = any() / 1e6;
}

/* --- Sorting and searching --- */
static int by_value(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}
static uint64_t sort_library(void)
{
    memcpy(scratch, numbers, 4 * n);
    qsort(scratch, n, 4, by_value);
    return scratch[n / 2];
}
static uint64_t sort_shell(void)
{
    memcpy(scratch, numbers, 4 * n);
    for (long gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (long i = gap; i < n; i++) {
            int32_t value = scratch[i];
            long j = i;
            for (; j >= gap && scratch[j - gap] > value; j -= gap)
                scratch[j] = scratch[j - gap];
            scratch[j] = value;
        }
    return scratch[n / 2];
}
static uint64_t sort_heap(void)
{
    memcpy(scratch, numbers, 4 * n);
    for (long first = n / 2 - 1, last = n; last > 1;) {
        int32_t value;
        long root;
        if (first >= 0)
            root = first--, value = scratch[root];
        else
            value = scratch[--last], scratch[last] = scratch[0], root = 0;
        for (long child; (child = 2 * root + 1) < last; root = child) {
            child += child + 1 < last && scratch[child + 1] > scratch[child];
            if (scratch[child] <= value)
                break;
            scratch[root] = scratch[child];
        }
        scratch[root] = value;
    }
    return scratch[n / 2];
}
static uint64_t sort_radix(void)
{
    int32_t *source = numbers, *into = scratch, *other = (int32_t *)malloc(4 * n);
    for (int shift = 0; shift < 24; shift += 8) {
        long starts[257] = {0};
        for (long i = 0; i < n; i++)
            starts[(source[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            starts[i + 1] += starts[i];
        for (long i = 0; i < n; i++)
            into[starts[source[i] >> shift & 255]++] = source[i];
        source = into, into = into == scratch ? other : scratch;
    }
    uint64_t middle = source[n / 2];
    free(other);
    return middle;
}
static uint64_t search_binary(void)
{
    uint64_t found = 0;
    for (int look = 0; look < 20000; look++) {
        int32_t wanted = any() % (3 * n);
        long low = 0, high = n;
        while (low < high) {
            long middle = (low + high) / 2;
            if (numbers[middle] < wanted)
                low = middle + 1;
            else
                high = middle;
        }
        found += low;
    }
    return found;
}
static uint64_t hash_table(void)
{
    uint64_t mask = 1, found = 0;
    while (mask < 2 * (uint64_t)n)
        mask *= 2;
    int32_t *table = get(4 * mask--);
    for (long i = 0; i < n; i++) {
        uint64_t at = numbers[i] * 2654435761u >> 4 & mask;
        while (table[at] && table[at] != numbers[i])
            at = (at + 1) & mask, found++;
        table[at] = numbers[i];
    }
    free(table);
    return found;
}
struct node { struct node *left, *right; int32_t key; };
static void plant(struct node **place, struct node *added)
{
    while (*place)
        place = added->key < (*place)->key ? &(*place)->left : &(*place)->right;
    *place = added;
}
static uint64_t search_tree(void)
{
    struct node *all = get(sizeof *all * n), *root = NULL;
    for (long i = 0; i < n; i++)
        all[i].key = numbers[i], plant(&root, &all[i]);
    uint64_t first = root->key;
    free(all);
    return first;
}
static struct node *grown(int depth)
{
    struct node *made = calloc(1, sizeof *made);
    if (depth > 0)
        made->left = grown(depth - 1), made->right = grown(depth - 1);
    return made;
}
static uint64_t felled(struct node *tree)
{
    uint64_t below = tree->left ? felled(tree->left) + felled(tree->right) : 0;
    free(tree);
    return below + 1;
}
static uint64_t trees(void) { return felled(grown(n)); }

/* --- Hashes and compression --- */
static uint64_t hash_fnv(void)
{
    uint64_t hash = 14695981039346656037u;
    for (long i = 0; i < n; i++)
        hash = (hash ^ text[i]) * 1099511628211u;
    return hash;
}
static uint64_t hash_crc_bits(void)
{
    uint32_t crc = ~0u;
    for (long i = 0; i < n; i++) {
        crc ^= text[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
    }
    return crc;
}
static uint64_t hash_adler_own(void)
{
    uint32_t a = 1, b = 0;
    for (long i = 0; i < n; i++)
        a = (a + text[i]) % 65521, b = (b + a) % 65521;
    return (uint64_t)b << 16 | a;
}
static uint64_t hash_siphash(void)
{
    uint64_t v0 = 1, v1 = 2, v2 = 3, v3 = 4;
    for (long i = 0; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, text + i, 8);
        v3 ^= word;
        for (int round = 0; round < 2; round++) {
            v0 += v1, v1 = (v1 << 13 | v1 >> 51) ^ v0, v0 = v0 << 32 | v0 >> 32;
            v2 += v3, v3 = (v3 << 16 | v3 >> 48) ^ v2;
            v0 += v3, v3 = (v3 << 21 | v3 >> 43) ^ v0;
            v2 += v1, v1 = (v1 << 17 | v1 >> 47) ^ v2, v2 = v2 << 32 | v2 >> 32;
        }
        v0 ^= word;
    }
    return v0 ^ v1 ^ v2 ^ v3;
}
static uint64_t zlib_crc(void) { return crc32(0, text, n); }
static uint64_t deflated(int level)
{
    uLongf size = 2 * n + 1024;
    compress2(packed, &size, text, n, level);
    return packed_size = size;
}
static uint64_t zlib_1(void) { return deflated(1); }
static uint64_t zlib_6(void) { return deflated(6); }
static void deflate_first(long size) { write_text(size), deflated(6), scratch = get(size + 64); }
static uint64_t zlib_inflate(void)
{
    uLongf size = n;
    uncompress((unsigned char *)scratch, &size, packed, packed_size);
    return size;
}
static uint64_t bzip2_pack(void)
{
    unsigned size = 2 * n + 1024;
    BZ2_bzBuffToBuffCompress((char *)packed, &size, (char *)text, n, 1, 0, 0);
    return size;
}
static uint64_t lzma_pack(void)
{
    size_t size = 0;
    lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, text, n, packed, &size, 2 * n + 1024);
    return size;
}
static uint64_t lz_own(void) /* finds matches by a table of hashes, as LZ4 does */
{
    static int32_t last[4096];
    memset(last, 0, sizeof last);
    uint64_t out = 0;
    for (long i = 0; i + 8 < n;) {
        uint32_t word, length = 0;
        memcpy(&word, text + i, 4);
        int32_t *place = &last[word * 2654435761u >> 20], found = *place;
        *place = i;
        while (found < i && i + length < n && text[found + length] == text[i + length])
            length++;
        i += length >= 4 ? length : 1, out += length >= 4 ? 3 : 1;
    }
    return out;
}
static uint64_t huffman(void) /* counts, builds the code by repeated search, and adds up its length */
{
    uint64_t weight[512] = {0}, bits = 0;
    int alive = 0;
    for (long i = 0; i < n; i++)
        weight[text[i]]++;
    for (int i = 0; i < 256; i++)
        alive += weight[i] > 0;
    for (int made = 256; alive > 1; alive--, made++) {
        int low[2];
        for (int k = 0; k < 2; k++) {
            low[k] = -1;
            for (int i = 0; i < made; i++)
                if (weight[i] && !(k && i == low[0]) && (low[k] < 0 || weight[i] < weight[low[k]]))
                    low[k] = i;
        }
        bits += weight[made] = weight[low[0]] + weight[low[1]];
        weight[low[0]] = weight[low[1]] = 0;
    }
    return bits;
}

/* --- Text --- */
static uint64_t text_words(void)
{
    uint64_t words = 0;
    for (long i = 0, inside = 0; i < n; i++) {
        int letter = text[i] > ' ';
        words += letter && !inside, inside = letter;
    }
    return words;
}
static uint64_t text_lines(void)
{
    uint64_t lines = 0;
    for (unsigned char *at = text; (at = memchr(at, '\n', text + n - at)); at++)
        lines++;
    return lines;
}
static uint64_t text_find(void)
{
    uint64_t found = 0;
    for (char *at = (char *)text; (at = strstr(at, "abe")); at++)
        found++;
    return found;
}
static uint64_t text_edit(void)
{
    long size = 600, row[601];
    for (long j = 0; j <= size; j++)
        row[j] = j;
    for (long i = 1; i <= size; i++)
        for (long j = 1, corner = row[0]++; j <= size; j++) {
            long best = corner + (text[i] != text[n / 2 + j]);
            corner = row[j];
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = row[j] + 1 < best ? row[j] + 1 : best;
        }
    return row[size];
}
static uint64_t text_base64(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char *out = packed;
    for (long i = 0; i + 3 <= n; i += 3) {
        uint32_t three = text[i] << 16 | text[i + 1] << 8 | text[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6)
            *out++ = digits[three >> shift & 63];
    }
    return out - packed + packed[5];
}
static void write_numbers(long size)
{
    n = size, text = get(24 * size + 64);
    char *out = (char *)text;
    for (long i = 0; i < size; i++)
        out += sprintf(out, i % 2 ? "%u.%u " : "%u ", any() % 100000, any() % 1000);
}
static uint64_t parse_library(void)
{
    double sum = 0;
    char *at = (char *)text, *end;
    for (double value; value = strtod(at, &end), end != at; at = end)
        sum += value;
    return (uint64_t)sum;
}
static uint64_t parse_own(void)
{
    uint64_t sum = 0, value = 0;
    for (unsigned char *at = text; *at; at++) {
        if (*at >= '0' && *at <= '9')
            value = 10 * value + *at - '0';
        else
            sum += value, value = 0;
    }
    return sum;
}
static uint64_t print_numbers(void)
{
    char line[64];
    uint64_t bytes = 0;
    for (long i = 0; i < n; i++)
        bytes += snprintf(line, sizeof line, "%ld: %08x %.3f", i, (unsigned)i * 77u, i / 7.0);
    return bytes;
}

/* --- Numbers, images, games --- */
static uint64_t matrix_rows(void)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            double sum = 0;
            for (long k = 0; k < n; k++)
                sum += A[i * n + k] * B[k * n + j];
            C[i * n + j] = sum;
        }
    return (uint64_t)C[n + 1];
}
static uint64_t matrix_inner(void)
{
    memset(C, 0, 8 * n * n);
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++)
                C[i * n + j] += A[i * n + k] * B[k * n + j];
    return (uint64_t)C[n + 1];
}
static uint64_t transpose(void)
{
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++)
            B[j * n + i] = A[i * n + j];
    return (uint64_t)B[n];
}
static uint64_t blur(void)
{
    for (long i = 1; i < n - 1; i++)
        for (long j = 1; j < n - 1; j++) {
            double sum = 0;
            for (long y = -1; y <= 1; y++)
                for (long x = -1; x <= 1; x++)
                    sum += A[(i + y) * n + j + x];
            C[i * n + j] = sum / 9;
        }
    return (uint64_t)C[n + 1];
}
static uint64_t floyd(void)
{
    memcpy(C, A, 8 * n * n);
    for (long k = 0; k < n; k++)
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++)
                if (C[i * n + k] + C[k * n + j] < C[i * n + j])
                    C[i * n + j] = C[i * n + k] + C[k * n + j];
    return (uint64_t)C[n + 1];
}
static uint64_t nbody(void)
{
    double at[5][3], speed[5][3] = {{0}}, mass[5] = {10, 1, 2, 0.5, 0.25};
    for (int i = 0; i < 15; i++)
        at[i / 3][i % 3] = i * 1.7 - (i % 4) * 3;
    for (long step = 0; step < n; step++)
        for (int i = 0; i < 5; i++) {
            for (int j = 0; j < 5; j++) {
                double apart[3], square = 0.1;
                for (int k = 0; k < 3; k++)
                    apart[k] = at[j][k] - at[i][k], square += apart[k] * apart[k];
                for (int k = 0; k < 3; k++)
                    speed[i][k] += apart[k] * mass[j] / (square * sqrt(square)) * 1e-3;
            }
            for (int k = 0; k < 3; k++)
                at[i][k] += speed[i][k] * 1e-3;
        }
    return (uint64_t)(at[0][0] * 1e6);
}
static uint64_t mandelbrot(void)
{
    uint64_t inside = 0;
    for (long y = 0; y < n; y++)
        for (long x = 0; x < n; x++) {
            double cr = 3.0 * x / n - 2, ci = 2.0 * y / n - 1, r = 0, i = 0;
            int turn = 0;
            for (; turn < 50 && r * r + i * i < 4; turn++) {
                double next = r * r - i * i + cr;
                i = 2 * r * i + ci, r = next;
            }
            inside += turn;
        }
    return inside;
}
static void fft_step(double *re, double *im, long size, long step, double *tre, double *tim)
{
    if (step >= size)
        return;
    fft_step(tre, tim, size, 2 * step, re, im), fft_step(tre + step, tim + step, size, 2 * step, re + step, im + step);
    for (long i = 0; i < size; i += 2 * step) {
        double c = cos(M_PI * i / size), s = -sin(M_PI * i / size);
        double r = c * tre[i + step] - s * tim[i + step], m = c * tim[i + step] + s * tre[i + step];
        re[i / 2] = tre[i] + r, im[i / 2] = tim[i] + m;
        re[(i + size) / 2] = tre[i] - r, im[(i + size) / 2] = tim[i] - m;
    }
}
static uint64_t fft(void)
{
    long size = n * n;
    memcpy(C, A, 8 * size);
    double *re = get(8 * size), *im = get(8 * size);
    memset(B, 0, 8 * size), memcpy(re, C, 8 * size);
    fft_step(C, B, size, 1, re, im);
    free(re), free(im);
    return (uint64_t)fabs(C[1]);
}
static uint64_t sieve(void)
{
    char *composite = get(n);
    uint64_t primes = 0;
    for (long i = 2; i < n; i++)
        if (!composite[i]) {
            primes++;
            for (long k = 2 * i; k < n; k += i)
                composite[k] = 1;
        }
    free(composite);
    return primes;
}
static uint64_t life(void)
{
    unsigned char *now = text, *next = packed;
    long width = n;
    for (int turn = 0; turn < 4; turn++) {
        for (long y = 1; y < width - 1; y++)
            for (long x = 1; x < width - 1; x++) {
                unsigned char *at = now + y * width + x;
                int around = 0;
                for (long dy = -width; dy <= width; dy += width)
                    around += (at[dy - 1] & 1) + (at[dy] & 1) + (at[dy + 1] & 1);
                around -= *at & 1;
                next[y * width + x] = around == 3 || (around == 2 && (*at & 1));
            }
        unsigned char *other = now;
        now = next, next = other;
    }
    return now[width + 1];
}
static void write_square(long size) { write_text(size * size), n = size; }
static uint64_t place_queens(long size, uint32_t columns, uint32_t left, uint32_t right)
{
    uint32_t all = (1u << size) - 1, open = all & ~(columns | left | right);
    uint64_t found = columns == all;
    for (; open; open &= open - 1) {
        uint32_t bit = open & -open;
        found += place_queens(size, columns | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return found;
}
static uint64_t queens(void) { return place_queens(n, 0, 0, 0); }
static uint64_t fannkuch(void)
{
    int p[12], q[12], count[12], most = 0;
    for (int i = 0; i < n; i++)
        p[i] = i;
    for (int r = n;;) {
        for (; r != 1; r--)
            count[r - 1] = r;
        memcpy(q, p, sizeof p);
        int flips = 0;
        for (int k; (k = q[0]); flips++)
            for (int i = 0, j = k; i < j; i++, j--) {
                int other = q[i];
                q[i] = q[j], q[j] = other;
            }
        most = flips > most ? flips : most;
        for (;; r++) {
            if (r == n)
                return most;
            int first = p[0];
            for (int i = 0; i < r; i++)
                p[i] = p[i + 1];
            p[r] = first;
            if (--count[r] > 0)
                break;
        }
    }
}
static uint64_t interpreter(void) /* a machine of eight instructions runs a loop */
{
    static const unsigned char code[] = {0, 1, 2, 3, 4, 3, 5, 2, 1, 6, 0, 3, 7};
    uint64_t stack[4] = {1, 2, 3, 4};
    for (long left = n, at = 0; left;)
        switch (code[at++]) {
        case 0: stack[0] += stack[1]; break;
        case 1: stack[1] ^= stack[2] << 3; break;
        case 2: stack[2] += stack[0] >> 5; break;
        case 3: stack[3] = stack[3] * 31 + stack[1]; break;
        case 4: if (stack[3] & 64) at++; break;
        case 5: stack[0] -= stack[3]; break;
        case 6: if (stack[0] & 32) at += 2; break;
        default: at = 0, left--;
        }
    return stack[0];
}
static uint64_t graph(void) /* breadth first through a graph of random edges */
{
    int32_t *queue = get(4 * n), *seen = get(4 * n), tail = 1;
    seen[0] = 1;
    for (int32_t head = 0; head < tail; head++)
        for (int k = 0; k < 4; k++) {
            int32_t next = (numbers[queue[head]] + (uint64_t)k * 7919 * queue[head]) % n;
            if (!seen[next])
                seen[next] = 1, queue[tail++] = next;
        }
    free(queue), free(seen);
    return tail;
}
static uint64_t knapsack(void)
{
    memset(scratch, 0, 4 * n);
    for (int item = 0; item < 60; item++) {
        long weight = numbers[item] % 200 + 1, worth = numbers[item] % 977;
        for (long room = n - 1; room >= weight; room--)
            if (scratch[room - weight] + worth > scratch[room])
                scratch[room] = scratch[room - weight] + worth;
    }
    return scratch[n - 1];
}
static uint64_t bignum(void) /* the square of a number of n words, by hand */
{
    uint32_t *product = get(8 * n + 8);
    for (long i = 0; i < n; i++) {
        uint64_t carry = 0;
        for (long j = 0; j < n; j++) {
            carry += (uint64_t)(uint32_t)numbers[i] * (uint32_t)numbers[j] + product[i + j];
            product[i + j] = carry, carry >>= 32;
        }
        product[i + n] = carry;
    }
    uint64_t middle = product[n];
    free(product);
    return middle;
}

/* --- SQLite --- */
static sqlite3 *database;
static void asked(const char *sql)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
        abort();
}
static void insert_rows(void)
{
    char sql[200];
    asked("drop table if exists t; create table t(id integer primary key, k int, word text); begin");
    for (long i = 0; i < n; i++) {
        sprintf(sql, "insert into t values(%ld, %u, 'word%u')", i, any() % 5000, any() % 900);
        asked(sql);
    }
    asked("commit");
}
static void open_database(long size)
{
    n = size;
    sqlite3_open(":memory:", &database);
    insert_rows();
    asked("create index by_k on t(k)");
}
static uint64_t sql_insert(void) { return insert_rows(), n; }
static uint64_t sql_scan(void) { return asked("select count(*), sum(k) from t where word like '%5%'"), n; }
static uint64_t sql_index(void)
{
    char sql[100];
    for (int look = 0; look < 200; look++)
        sprintf(sql, "select max(id) from t where k = %u", any() % 5000), asked(sql);
    return n;
}
static uint64_t sql_group(void) { return asked("select word, count(*), avg(k) from t group by word order by 2"), n; }
static uint64_t sql_join(void) { return asked("select count(*) from t a join t b on a.k = b.k where a.id < 500"), n; }

static const struct program programs[] = {
    {"sort-library", fill, sort_library}, {"sort-library-sorted", fill_sorted, sort_library},
    {"sort-shell", fill, sort_shell}, {"sort-heap", fill, sort_heap}, {"sort-radix", fill, sort_radix},
    {"search-binary", fill_sorted, search_binary}, {"search-table", fill, hash_table}, {"search-tree", fill, search_tree},
    {"trees", fill, trees}, {"hash-fnv", write_text, hash_fnv}, {"hash-crc-bits", write_text, hash_crc_bits},
    {"hash-adler", write_text, hash_adler_own}, {"hash-sip", write_text, hash_siphash}, {"zlib-crc", write_text, zlib_crc},
    {"zlib-1", write_text, zlib_1}, {"zlib-6", write_text, zlib_6}, {"zlib-inflate", deflate_first, zlib_inflate},
    {"bzip2", write_text, bzip2_pack}, {"lzma", write_text, lzma_pack}, {"lz", write_text, lz_own},
    {"huffman", write_text, huffman}, {"text-words", write_text, text_words}, {"text-lines", write_text, text_lines},
    {"text-find", write_text, text_find}, {"text-edit", write_text, text_edit}, {"base64", write_text, text_base64},
    {"parse-library", write_numbers, parse_library}, {"parse-own", write_numbers, parse_own},
    {"print", fill, print_numbers}, {"matrix-rows", fill_reals, matrix_rows}, {"matrix-inner", fill_reals, matrix_inner},
    {"transpose", fill_reals, transpose}, {"blur", fill_reals, blur}, {"floyd", fill_reals, floyd}, {"nbody", fill, nbody},
    {"mandelbrot", fill, mandelbrot}, {"fft", fill_reals, fft}, {"sieve", fill, sieve}, {"life", write_square, life},
    {"queens", fill, queens}, {"fannkuch", fill, fannkuch}, {"vm", fill, interpreter}, {"graph", fill, graph},
    {"knapsack", fill, knapsack}, {"bignum", fill, bignum}, {"sqlite-insert", open_database, sql_insert},
    {"sqlite-scan", open_database, sql_scan}, {"sqlite-index", open_database, sql_index},
    {"sqlite-group", open_database, sql_group}, {"sqlite-join", open_database, sql_join},
};

int main(int argc, char **argv) { return start(programs, sizeof programs / sizeof *programs, argc, argv); }
