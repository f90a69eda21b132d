package view

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/tenonhq/tenon"
)

// tallyVersion is the version of the binary form of a [Tally]. The form consists of the version, numbers as varints,
// and texts preceded by their lengths. Statistics decode one tally for each run, which takes a fifth of the time that
// JSON would take.
// Version 1 lacks the tokens of caches, and version 2 the calls without tokens.
const tallyVersion = 3

// errTally is the error for data that are not a tally, or that were written by a later version.
var errTally = errors.New("the summary of a run is damaged, or of a later tenon")

// The flags of a tally.
const (
	tallyCalled = 1 << iota
	tallyEnded
)

// AppendTally appends the encoded tally to b.
func AppendTally(b []byte, t *Tally) []byte {
	flags := byte(0)
	if t.Called {
		flags |= tallyCalled
	}
	if t.Ended {
		flags |= tallyEnded
	}
	b = append(b, tallyVersion, flags)
	for _, s := range [...]string{t.Agent, t.Model, t.Session, t.Title, string(t.Principal)} {
		b = appendText(b, s)
	}
	b = binary.AppendVarint(b, t.Created.UnixNano())
	b = binary.AppendVarint(b, t.Updated.UnixNano())
	m := &t.Models
	b = appendNumbers(b, int64(m.Calls), int64(m.Errors), int64(m.Input), int64(m.Output), int64(m.Cost),
		int64(m.CacheRead), int64(m.CacheWrite), int64(m.Unmetered))
	b = appendList(b, m.Took)
	b = binary.AppendUvarint(b, uint64(len(t.Tools)))
	for i := range t.Tools {
		o := &t.Tools[i]
		for _, s := range [...]string{o.Name, o.Server, o.Identity, o.Remote} {
			b = appendText(b, s)
		}
		b = appendNumbers(b, int64(o.Calls), int64(o.Errors), int64(o.Denied), int64(o.Cached), int64(o.Unknown),
			o.Bytes, int64(o.Cost))
		b = appendList(b, o.Took)
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendNumbers(b []byte, list ...int64) []byte {
	for _, n := range list {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func appendList(b []byte, list []int64) []byte {
	return appendNumbers(binary.AppendUvarint(b, uint64(len(list))), list...)
}

// TallyReader decodes tallies one after another. It keeps one copy of each name, so that 20,000 tallies of a few tools
// share these copies. The zero value is ready to use.
type TallyReader struct {
	names map[string]string
	b     []byte
	bad   bool
}

// maxNames bounds the names that a reader keeps.
const maxNames = 10_000

// Read decodes a tally. The result does not refer to b. It returns an error if b is not a tally.
func (r *TallyReader) Read(b []byte) (t Tally, err error) {
	if len(b) < 2 || b[0] < 1 || b[0] > tallyVersion {
		return Tally{}, errTally
	}
	t.Called, t.Ended = b[1]&tallyCalled != 0, b[1]&tallyEnded != 0
	r.b, r.bad = b[2:], false
	t.Agent, t.Model, t.Session, t.Title = r.name(), r.name(), r.text(), r.text()
	t.Principal = tenon.Principal(r.name())
	t.Created, t.Updated = time.Unix(0, r.number()).UTC(), time.Unix(0, r.number()).UTC()
	m := &t.Models
	m.Calls, m.Errors, m.Input, m.Output = r.count(), r.count(), r.count(), r.count()
	m.Cost = tenon.USD(r.number())
	if b[0] > 1 {
		m.CacheRead, m.CacheWrite = r.count(), r.count()
	}
	if b[0] > 2 {
		m.Unmetered = r.count()
	}
	m.Took = r.list()
	n := r.length()
	if n > 0 {
		t.Tools = make([]ToolTally, 0, min(n, 64))
	}
	for ; n > 0 && !r.bad; n-- {
		o := ToolTally{Name: r.name(), Server: r.name(), Identity: r.name(), Remote: r.name()}
		o.Calls, o.Errors, o.Denied, o.Cached, o.Unknown = r.count(), r.count(), r.count(), r.count(), r.count()
		o.Bytes, o.Cost = r.number(), tenon.USD(r.number())
		o.Took = r.list()
		t.Tools = append(t.Tools, o)
	}
	if r.bad || len(r.b) > 0 {
		return Tally{}, errTally
	}
	return t, nil
}

// number reads a number. After an error it returns 0.
func (r *TallyReader) number() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number that is not negative and fits into an int.
func (r *TallyReader) count() int {
	n := r.number()
	if n < 0 || n > math.MaxInt {
		r.bad = true
		return 0
	}
	return int(n)
}

// length reads the number of values that follow. It is bounded by the remaining bytes, because each value takes at
// least one byte.
func (r *TallyReader) length() int {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || r.bad || v > uint64(len(r.b)-n) {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return int(v)
}

func (r *TallyReader) list() []int64 {
	n := r.length()
	if n == 0 {
		return nil
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = r.number()
	}
	return list
}

func (r *TallyReader) text() string {
	n := r.length()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// name reads a text that many tallies have in common.
func (r *TallyReader) name() string {
	n := r.length()
	raw := r.b[:n]
	r.b = r.b[n:]
	if s, ok := r.names[string(raw)]; ok {
		return s
	}
	s := string(raw)
	if r.names == nil {
		r.names = map[string]string{}
	}
	if len(r.names) < maxNames {
		r.names[s] = s
	}
	return s
}
