package table

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// ResultColumn is the column, and the row id, of the text of a tool's result.
const ResultColumn = "Result"

// WriteResult writes the result of a tool as a table and returns the number of rows. If the result consists only of
// texts, the table has one cell with the text, in the column Result. Any other result has a row for each block of its
// content, with the columns Result (the text), Type, MimeType, URI, Name and Data. Images, audio and files are stored
// as bytes, and links as their URI. Errors: invalid (data that is not base64), store.
func WriteResult(ctx context.Context, path string, result *tenon.Result, o WriteOptions) (rows int64, err error) {
	if !slices.ContainsFunc(result.Content, func(c tenon.Content) bool { return c.Type != tenon.ContentText }) {
		return 1, WriteTexts(ctx, path, ResultColumn, []string{ResultColumn}, []string{result.Text()}, o)
	}
	if o, err = o.withDefaults(); err != nil {
		return 0, err
	}
	text := arrow.BinaryTypes.String
	fields := []arrow.Field{{Name: RowID, Type: text}}
	for _, name := range []string{ResultColumn, "Type", "MimeType", "URI", "Name"} {
		fields = append(fields, arrow.Field{Name: name, Type: text, Nullable: true})
	}
	fields = append(fields, arrow.Field{Name: "Data", Type: arrow.BinaryTypes.LargeBinary, Nullable: true})
	schema := arrow.NewSchema(fields, nil)
	w, err := create(ctx, path, schema, nil, o)
	if err != nil {
		return 0, err
	}
	defer w.abort()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i, c := range result.Content {
		id := ResultColumn
		if i > 0 {
			id += "_" + strconv.Itoa(i)
		}
		b.Field(0).(*array.StringBuilder).Append(id)
		for k, s := range []string{c.Text, c.Type, c.MimeType, c.URI, c.Name} {
			f := b.Field(k + 1).(*array.StringBuilder)
			if s == "" {
				f.AppendNull()
			} else {
				f.Append(s)
			}
		}
		data := b.Field(6).(*array.BinaryBuilder)
		if c.Data == "" {
			data.AppendNull()
			continue
		}
		raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(c.Data, "="))
		if err != nil {
			return 0, invalid("block %d of the result, %s: its data is not base64: %w", i, tenon.Visible(c.Type), err)
		}
		data.Append(raw)
	}
	if err := w.write(ctx, b.NewRecordBatch()); err != nil {
		return 0, err
	}
	if err := w.commit(); err != nil {
		return 0, err
	}
	return w.rows, nil
}

// ResultRows returns the rows of a structured result. They come from the value at a path of keys, such as weather.days.
// The path "." is the whole value. A list of objects results in a row for each object, and an object in one row. A list
// of other values results in a row for each value, in the column value. Errors: invalid.
func ResultRows(result *tenon.Result, path string) ([]json.RawMessage, error) {
	raw := result.Structured
	if len(raw) == 0 {
		raw = json.RawMessage(strings.TrimSpace(result.Text()))
	}
	if !json.Valid(raw) {
		return nil, invalid("the result is not structured: it has no structuredContent, and its text is not JSON")
	}
	for _, key := range strings.Split(strings.Trim(path, "."), ".") {
		if key == "" {
			continue
		}
		next := json.RawMessage(nil)
		var keys []string
		if rawjson.IsObject(raw) {
			for k, v := range rawjson.Members(raw) {
				keys = append(keys, string(k))
				if string(k) == key {
					next = v
				}
			}
		}
		if next == nil {
			return nil, invalid("the result has no '%s'; its keys: %s", tenon.Visible(key),
				tenon.Visible(strings.Join(keys, ", ")))
		}
		raw = next
	}
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &list) != nil:
		list = []json.RawMessage{raw}
	case list == nil:
		list = []json.RawMessage{} // null
	}
	for i, v := range list {
		if !rawjson.IsObject(v) {
			list[i] = slices.Concat([]byte(`{"value":`), v, []byte{'}'})
		}
	}
	return list, nil
}
