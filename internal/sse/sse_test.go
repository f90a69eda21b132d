package sse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

type got struct{ Type, Data, ID string }

func collect(t testing.TB, src io.Reader, max int) ([]got, error) {
	t.Helper()
	r := NewReader(src, max)
	var all []got
	for {
		ev, err := r.Next()
		if err != nil {
			return all, err
		}
		all = append(all, got{ev.Type, string(ev.Data), ev.ID})
	}
}

// The cases follow the web platform tests of EventSource.
var cases = []struct {
	name, in string
	want     []got
}{
	{"empty", "", nil},
	{"one", "data: a\n\n", []got{{"", "a", ""}}},
	{"no_space", "data:a\n\n", []got{{"", "a", ""}}},
	{"one_space_only", "data:  a\n\n", []got{{"", " a", ""}}},
	{"bom", "\xEF\xBB\xBFdata: a\n\n", []got{{"", "a", ""}}},
	{"two_boms", "\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\ndata: b\n\n", []got{{"", "b", ""}}},
	{"half_bom", "\xEF\xBBdata: a\n\ndata: b\n\n", []got{{"", "b", ""}}},
	{"crlf", "data: a\r\ndata: b\r\n\r\n", []got{{"", "a\nb", ""}}},
	{"cr", "data: a\rdata: b\r\r", []got{{"", "a\nb", ""}}},
	{"mixed_ends", "data: a\r\n\ndata: b\r\rdata: c\n\r\n", []got{{"", "a", ""}, {"", "b", ""}, {"", "c", ""}}},
	{"empty_data", "data\n\ndata:\n\n", []got{{"", "", ""}, {"", "", ""}}},
	{"two_empty_data", "data\ndata\n\n", []got{{"", "\n", ""}}},
	{"cut_off", "data: a\n\ndata: b\n", []got{{"", "a", ""}}},
	{"no_data_no_event", "event: x\n\ndata: a\n\n", []got{{"", "a", ""}}},
	{"type", "event: x\ndata: a\n\ndata: b\n\n", []got{{"x", "a", ""}, {"", "b", ""}}},
	{"id_stays", "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []got{{"", "a", "1"}, {"", "b", "1"}, {"", "c", ""}}},
	{"id_with_nul", "id: 1\ndata: a\n\nid: 2\x00\ndata: b\n\n", []got{{"", "a", "1"}, {"", "b", "1"}}},
	{"id_alone", "id: 7\n\ndata: a\n\n", []got{{"", "a", "7"}}},
	{"comments", ": hi\n\n:\ndata: a\n:x\ndata: b\n\n", []got{{"", "a\nb", ""}}},
	{"unknown_fields", "Data: x\n data: y\nfoo\ndata: a\n\n", []got{{"", "a", ""}}},
	{"colon_in_data", "data: {\"a\":1}\n\n", []got{{"", `{"a":1}`, ""}}},
	{"nul_in_data", "data: \x00\n\n", []got{{"", "\x00", ""}}},
}

func TestNext(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for split := 0; split <= len(c.in); split++ {
				src := io.MultiReader(strings.NewReader(c.in[:split]), strings.NewReader(c.in[split:]))
				all, err := collect(t, src, 0)
				if diff := cmp.Diff(c.want, all); diff != "" || err != io.EOF {
					t.Fatalf("split at %d: %v\n%s", split, err, diff)
				}
			}
			for name, src := range map[string]io.Reader{
				"bytes":    iotest.OneByteReader(strings.NewReader(c.in)),
				"data_err": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				if all, err := collect(t, src, 0); !cmp.Equal(c.want, all) || err != io.EOF {
					t.Fatalf("%s: %v, %v", name, all, err)
				}
			}
		})
	}
}

type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	e.n += len(b)
	return len(b), nil
}

func TestBounds(t *testing.T) {
	t.Run("L2_endless_line", func(t *testing.T) {
		src := &endless{}
		if _, err := collect(t, src, 1<<16); !errors.Is(err, ErrTooLarge) || src.n > 1<<18 {
			t.Fatalf("%v after %d bytes", err, src.n)
		}
	})
	t.Run("many_lines", func(t *testing.T) {
		if _, err := collect(t, strings.NewReader(strings.Repeat("data: abc\n", 1000)), 1000); !errors.Is(err,
			ErrTooLarge) {
			t.Fatal(err)
		}
	})
	t.Run("exact", func(t *testing.T) {
		all, err := collect(t, strings.NewReader("data: "+strings.Repeat("a", 94)+"\n\n"), 100)
		if len(all) != 1 || err != io.EOF {
			t.Fatal(all, err)
		}
	})
	t.Run("error_stays", func(t *testing.T) {
		r := NewReader(iotest.ErrReader(io.ErrUnexpectedEOF), 0)
		for range 3 {
			if _, err := r.Next(); err != io.ErrUnexpectedEOF {
				t.Fatal(err)
			}
		}
	})
}

// TestNoReadAhead checks that an event terminated by a lone CR is returned before more bytes arrive.
func TestNoReadAhead(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n"} {
		pr, pw := io.Pipe()
		go pw.Write([]byte("data: a" + end))
		r := NewReader(pr, 0)
		if ev, err := r.Next(); err != nil || string(ev.Data) != "a" {
			t.Fatal(ev, err)
		}
		pw.Close()
		r.Next()
	}
}

func TestRetry(t *testing.T) {
	r := NewReader(strings.NewReader("retry: 1500\nid: 9\ndata: a\n\nretry: 2x\ndata: b\n\n"), 0)
	for range 2 {
		if _, err := r.Next(); err != nil || r.Retry() != 1500*time.Millisecond || r.LastID() != "9" {
			t.Fatal(err, r.Retry(), r.LastID())
		}
	}
}

func FuzzNext(f *testing.F) {
	for _, c := range cases {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, err1 := collect(t, bytes.NewReader(b), 64)
		split, err2 := collect(t, iotest.OneByteReader(bytes.NewReader(b)), 64)
		if !cmp.Equal(whole, split) || !errors.Is(err1, err2) {
			t.Fatalf("whole %v %v, byte by byte %v %v", whole, err1, split, err2)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	in := []byte(strings.Repeat("event: delta\ndata: {\"text\":\"hello world\"}\n\n", 1000))
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(in), 0)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
}
