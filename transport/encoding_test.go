package transport

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/jsonrpc"
)

func TestEncoded(t *testing.T) {
	const text = `{"s":"é ñ 日本 \u20ac 🧀"}`
	for _, tt := range []struct{ label, wire string }{
		{"", text}, {"UTF-8", text}, {"utf8", text},
		{"latin-1", "{\"s\":\"\xe9 \xf1 \\u65e5\\u672c \\u20ac \\ud83e\\uddc0\"}"},
		{"ISO_8859-1:1987", "{\"s\":\"\xe9 \xf1 \\u65e5\\u672c \\u20ac \\ud83e\\uddc0\"}"},
		{"shift_jis", "{\"s\":\"\\u00e9 \\u00f1 \x93\xfa\x96\x7b \\u20ac \\ud83e\\uddc0\"}"},
		{"utf-16le",
			"{\x00\"\x00s\x00\"\x00:\x00\"\x00\xe9\x00 \x00\xf1\x00 \x00\xe5\x65\x2c\x67 " +
				"\x00\\\x00u\x002\x000\x00a\x00c\x00 \x00\x3e\xd8\xc0\xdd\"\x00}\x00"},
	} {
		t.Run("HD-US2.4_"+tt.label, func(t *testing.T) {
			var wire bytes.Buffer
			_, w, err := Encoded(tt.label, nil, &wire)
			if err != nil {
				t.Fatal(err)
			}
			if n, err := io.WriteString(w, text); n != len(text) || err != nil || wire.String() != tt.wire {
				t.Fatalf("%d, %v: %q", n, err, &wire)
			}
			for _, src := range []io.Reader{bytes.NewReader(wire.Bytes()),
				iotest.OneByteReader(bytes.NewReader(wire.Bytes()))} {
				r, _, err := Encoded(tt.label, src, io.Discard)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(r); err != nil || !sameJSON(t, b, []byte(text)) {
					t.Fatalf("%v: %q", err, b)
				}
			}
		})
	}
	for _, label := range []string{"klingon", "-", "replacement", "utf-7", "utf-32"} {
		if _, _, err := Encoded(label, nil, nil); IsEncoding(label) || tenon.ErrorCode(err) != tenon.CodeConfig ||
			!strings.Contains(err.Error(), label) {
			t.Errorf("%s: %v", label, err)
		}
	}
	t.Run("mark", func(t *testing.T) {
		r, _, err := Encoded("utf-16", strings.NewReader("\xff\xfe{\x00}\x00\n\x00"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(r); err != nil || string(b) != "{}\n" {
			t.Fatalf("%q, %v", b, err)
		}
	})
}

// TestStdioEncoding lets a server echo several messages at a time and compares the bytes.
func TestStdioEncoding(t *testing.T) {
	for _, label := range []string{"latin-1", "utf-16le", "shift_jis", "iso-2022-jp", "gb18030"} {
		s := dial(t, "echo", StdioConfig{Encoding: label})
		for _, text := range []string{`{"s":"é日本🧀ਊ"}`, "[1,\n2]", `"` + strings.Repeat("ñ", 100_000) + `"`} {
			for range 2 {
				if err := s.Send(t.Context(), jsonrpc.Outgoing{Body: []byte(text)}); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if b, err := s.Recv(t.Context()); err != nil || !sameJSON(t, b, []byte(text)) {
					t.Fatalf("%s: %.100q, %v", label, b, err)
				}
			}
		}
	}
	if _, err := DialStdio(t.Context(), StdioConfig{Command: "/bin/sh",
		Encoding: "klingon"}); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Error(err)
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Log(err)
		return false
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	p, _ := json.Marshal(x) // it was read from JSON
	q, _ := json.Marshal(y)
	return bytes.Equal(p, q)
}

func FuzzEncoded(f *testing.F) {
	for _, label := range []string{"latin-1", "utf-16le", "utf-16be", "shift_jis", "iso-2022-jp", "gb18030", "big5",
		"euc-kr", "x-user-defined"} {
		f.Add(label, "é日本🧀\\", []byte("\xff\xfe\x1b$B"))
	}
	f.Fuzz(func(t *testing.T, label, text string, wire []byte) {
		r, _, err := Encoded(label, bytes.NewReader(wire), nil)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		_, w, _ := Encoded(label, nil, &out)
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		r, _, _ = Encoded(label, &out, nil)
		if got, err := io.ReadAll(r); err != nil || !sameJSON(t, got, want) {
			t.Fatalf("%s: %q came back as %q, %v", label, want, got, err)
		}
	})
}
