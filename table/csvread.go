package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// csvReader reads the records of CSV (RFC 4180). The standard library's reader skips empty lines and changes line
// breaks in quotes. In a table of one column, an empty line is a row whose cell is missing, and a line break in quotes
// is a part of the text.
type csvReader struct {
	in     *bufio.Reader
	comma  []byte
	fields int // number of fields of each record; 0 before the first one
	line   int // number of lines that were read

	text   []byte // the record without its quotes
	ends   []int  // ends of the fields in text
	places []csvPlace
	record []string
}

// csvPlace is the position of a field in the input, from 1. The column counts bytes.
type csvPlace struct{ line, column int }

var (
	errBareQuote = errors.New(`bare " in non-quoted field`)
	errQuote     = errors.New(`extraneous or missing " in quoted field`)
)

func newCSVReader(in *bufio.Reader, comma rune) *csvReader {
	return &csvReader{in: in, comma: utf8.AppendRune(nil, comma)}
}

// next reads a line with its end, and nothing but io.EOF after the last one.
func (r *csvReader) next() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		whole := bytes.Clone(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = r.in.ReadSlice('\n')
			whole = append(whole, line...)
		}
		line = whole
	}
	if len(line) > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	r.line++
	return line, err
}

// cutLine splits a line from its end: LF, CRLF, or a CR before the end of the input.
func cutLine(line []byte) (text, end []byte) {
	text = bytes.TrimSuffix(line, []byte("\n"))
	if text = bytes.TrimSuffix(text, []byte("\r")); len(text) == len(line) {
		return line, nil
	}
	return text, line[len(text):]
}

// Read returns the fields of a record. They are valid until the next call. Errors: io.EOF, the error of the input, and
// mistakes with their lines.
func (r *csvReader) Read() ([]string, error) {
	for {
		line, err := r.next()
		if err != nil {
			return nil, err
		}
		text, _ := cutLine(line)
		if len(text) == 0 && r.fields != 1 {
			continue // an empty line is a row only in a table of one column
		}
		begin := r.line
		if err := r.split(line); err != nil {
			return nil, err
		}
		switch n := len(r.ends); {
		case r.fields == 0:
			r.fields = n
		case n != r.fields:
			return nil, fmt.Errorf("record on line %d: wrong number of fields", begin)
		}
		return r.strings(), nil
	}
}

// strings returns the fields as parts of one text.
func (r *csvReader) strings() []string {
	all, from := string(r.text), 0
	r.record = r.record[:0]
	for _, end := range r.ends {
		r.record = append(r.record, all[from:end])
		from = end
	}
	return r.record
}

// split splits a record that begins with a line into its fields. Further lines belong to it if quotes contain their
// ends.
func (r *csvReader) split(line []byte) error {
	r.text, r.ends, r.places = r.text[:0], r.ends[:0], r.places[:0]
	text, end := cutLine(line)
	at := 0
	for {
		r.places = append(r.places, csvPlace{r.line, at + 1})
		if at == len(text) || text[at] != '"' {
			field, more := text[at:], false
			if i := bytes.Index(field, r.comma); i >= 0 {
				field, more = field[:i], true
			}
			if i := bytes.IndexByte(field, '"'); i >= 0 {
				return r.mistake(at+i+1, errBareQuote)
			}
			r.text = append(r.text, field...)
			r.ends = append(r.ends, len(r.text))
			if !more {
				return nil
			}
			at += len(field) + len(r.comma)
			continue
		}
		at++
		for { // the parts of a quoted field, between quotes and ends of lines
			i := bytes.IndexByte(text[at:], '"')
			if i < 0 {
				r.text = append(append(r.text, text[at:]...), end...)
				column := len(text) + 1
				var err error
				if line, err = r.next(); errors.Is(err, io.EOF) {
					r.line--
					return r.mistake(column, errQuote)
				} else if err != nil {
					return err
				}
				text, end = cutLine(line)
				at = 0
				continue
			}
			r.text = append(r.text, text[at:at+i]...)
			if at += i + 1; at < len(text) && text[at] == '"' {
				r.text = append(r.text, '"')
				at++
				continue
			}
			break
		}
		r.ends = append(r.ends, len(r.text))
		switch {
		case at == len(text):
			return nil
		case !bytes.HasPrefix(text[at:], r.comma):
			return r.mistake(at, errQuote)
		}
		at += len(r.comma)
	}
}

func (r *csvReader) mistake(column int, err error) error {
	return fmt.Errorf("parse error on line %d, column %d: %w", r.line, column, err)
}

// FieldPos returns the position of a field of the last record.
func (r *csvReader) FieldPos(field int) (line, column int) {
	p := r.places[field]
	return p.line, p.column
}
