package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
)

// file checks the header of the file and its schema.
func (k *checker) file(ctx context.Context) error {
	version, app, _, err := identify(ctx, k.conn, k.path)
	if err != nil {
		return err
	}
	k.report.Version = version
	switch {
	case app != applicationID:
		k.report.add(ProblemFile, "the mark of a store is missing from its header: it is %x", app)
	case version > len(migrations):
		return newerError(k.path, version, len(migrations))
	case version < 1:
		k.report.add(ProblemFile, "the version of its schema is %d", version)
		return nil
	}
	if err := k.header(ctx); err != nil {
		return err
	}
	return k.damage(ctx, ProblemFile, "schema", k.schema(ctx))
}

// header checks the fields of the file's header (SQLite file format, section 1.3). Counters may have any value.
func (k *checker) header(ctx context.Context) error {
	var page []byte
	var pages uint32
	err := k.conn.QueryRowContext(ctx, "SELECT data, (SELECT page_count FROM pragma_page_count) FROM sqlite_dbpage "+
		"WHERE pgno = 1").Scan(&page, &pages)
	if err != nil {
		return err
	}
	if len(page) < 100 {
		return tenon.Errorf(tenon.CodeStore, "store %s: its first page has %d bytes", k.path, len(page))
	}
	word := func(at int) uint32 { return binary.BigEndian.Uint32(page[at:]) }
	for _, f := range []struct {
		name string
		ok   bool
	}{
		{"mark of SQLite", string(page[:16]) == "SQLite format 3\x00"},
		{"page size", binary.BigEndian.Uint16(page[16:]) == storePageSize},
		{"versions of writing and reading", page[18] == page[19] && (page[18] == 2 || page[18] == 1)},
		{"reserved bytes of a page", page[20] == 0},
		{"payload fractions", page[21] == 64 && page[22] == 32 && page[23] == 32},
		{"number of pages", word(28) == pages || word(24) != word(92)},
		{"format of the schema", word(44) >= 1 && word(44) <= 4},
		{"settings of automatic compacting", (word(52) > 0 || word(64) == 0) && word(52) <= pages && word(64) <= 1},
		{"encoding of texts", word(56) == 1},
		{"reserved bytes", bytes.Count(page[72:92], []byte{0}) == 20},
	} {
		if !f.ok {
			k.report.add(ProblemFile, "field of the header: %s", f.name)
		}
	}
	return nil
}

// schema compares the tables and indexes with the results of the migrations.
func (k *checker) schema(ctx context.Context) error {
	got, err := schemaTexts(ctx, k.conn)
	if err != nil {
		return err
	}
	_, k.texts = got["table texts_index"]
	want, err := schemaOfVersion(ctx, k.report.Version, k.texts)
	if err != nil {
		return storeError(k.path, "compare the schema", err)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		text, there := got[name]
		switch {
		case !there:
			k.report.add(ProblemFile, "%s is missing from the schema", name)
		case text != want[name]:
			k.report.add(ProblemFile, "the schema of %s is not the one that tenon made", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[name]; !known {
			k.report.add(ProblemFile, "the schema has %s, which tenon did not make", tenon.Visible(name))
		}
	}
	return nil
}

// schemaTexts returns the SQL of each table and index, without white space.
func schemaTexts(ctx context.Context, conn *sql.Conn) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx,
		"SELECT type || ' ' || name, tbl_name || ' ' || coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err says what went wrong
	texts := map[string]string{}
	for rows.Next() {
		var name, text sql.RawBytes
		if err := rows.Scan(&name, &text); err != nil {
			return nil, err
		}
		texts[string(name)] = strings.Join(strings.Fields(strings.ReplaceAll(string(text), ",", " , ")), "")
	}
	return texts, rows.Err()
}

// schemaOfVersion makes the schema of a version in memory and returns its texts.
func schemaOfVersion(ctx context.Context, version int, withTexts bool) (map[string]string, error) {
	steps := slices.Clone(migrations[:version])
	if withTexts {
		tables := makeTexts
		if version < 9 {
			tables = strings.NewReplacer(",\n\tsum  INTEGER", "", ",\n\tsum INTEGER", "").Replace(tables)
		}
		steps = append(steps, tables)
	}
	return schemaInMemory(ctx, steps...)
}

// schemaInMemory makes a schema in memory and returns its texts.
func schemaInMemory(ctx context.Context, steps ...string) (map[string]string, error) {
	d, err := summing()
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{":memory:", d})
	defer func() { _ = db.Close() }() // in memory
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	for _, s := range steps {
		if _, err := conn.ExecContext(ctx, s); err != nil {
			return nil, err
		}
	}
	return schemaTexts(ctx, conn)
}
