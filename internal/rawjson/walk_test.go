package rawjson_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// valid are values on which the walker and encoding/json must agree.
var valid = []string{
	`{"a":1,"b":[1,{"c":"\"]}"}],"d":null}`, ` { "a" : "x\\" , "b":{}} `, `[1,"a,b",[2]]`, `{"\u0061":1}`,
	`{"a":[1,-0.5e+3,{"b":null}],"a":true}`, `"\u00e9\n\ud800"`, "\"\xff\"", `[[[[[[]]]]]]`, "1 ", `{"a":"b\"c"}`,
	`9007199254740993`, `{"n":[1.50,-0,1E400,0.10]}`, `{"a":"` + strings.Repeat(`it rains \" `, 20) + `","b":2}`,
	`{"a":[1,[2],"]"],"b":[3]}`, `{"é":"é","` + strings.Repeat("k", 40) + `\\":[]}`, "\t[\r\n1 , 2 ]\n", `{}`, `[]`,
}

// FuzzFields compares the walk over members and elements with encoding/json on valid input: keys, values, order,
// duplicates and the bytes of numbers. On other input it must not panic.
func FuzzFields(f *testing.F) {
	for _, s := range append(slices.Clone(valid), `{"a"`, `"`, `{"a":`, `{"a":[1,`, `}`, `[1}`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got [][2]string
		for k, v := range rawjson.Fields(data) {
			got = append(got, [2]string{string(k), string(v)})
		}
		var members []any
		for k := range rawjson.Members(data) {
			members = append(members, string(k))
		}
		n := 0
		for range rawjson.Elements(data) {
			n++
		}
		_ = rawjson.String(data)
		if !json.Valid(data) {
			return
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil && len(list) != n {
			t.Errorf("%s has %d elements, found %d", data, len(list), n)
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
			return
		}
		first := map[string]string{}
		i := 0
		for ; dec.More(); i++ {
			k, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			var v json.RawMessage
			if err := dec.Decode(&v); err != nil {
				t.Fatal(err)
			}
			if i >= len(got) || rawjson.DecodeBody([]byte(got[i][0])) != k || members[i] != k ||
				got[i][1] != string(v) {
				t.Fatalf("member %d of %s: %q", i, data, got)
			}
			if _, ok := first[k.(string)]; !ok {
				first[k.(string)] = string(v)
			}
		}
		if i != len(got) {
			t.Fatalf("%s has %d members, found %d", data, i, len(got))
		}
		for k, v := range first {
			if got := rawjson.Field(data, k); string(got) != v && !strings.Contains(k, "\ufffd") {
				t.Errorf("the first %q of %s is %s, found %s", k, data, v, got)
			}
		}
	})
}

// FuzzStrings compares the flat walk over all strings with the tokens of encoding/json.
func FuzzStrings(f *testing.F) {
	for _, s := range append(slices.Clone(valid), `{"a"`, `"`, `"\`, `{"a":`, `]"a":1`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		type text struct {
			s     string
			depth int
			value string // of a member; empty for other strings
		}
		var got []text
		for s := range rawjson.Strings(data) {
			one := text{s: rawjson.String(data[s.From:s.To]), depth: s.Depth}
			if s.Value >= 0 {
				one.value = string(data[s.Value:rawjson.End(data, s.Value)])
			}
			got = append(got, one)
		}
		if !json.Valid(data) {
			return
		}
		var want []text
		var walk func(raw json.RawMessage, depth int)
		walk = func(raw json.RawMessage, depth int) {
			var s string
			var list []json.RawMessage
			raw = bytes.TrimSpace(raw)
			switch raw[0] {
			case '"':
				if err := json.Unmarshal(raw, &s); err != nil {
					t.Fatal(err)
				}
				want = append(want, text{s: s, depth: depth})
			case '[':
				if err := json.Unmarshal(raw, &list); err != nil {
					t.Fatal(err)
				}
				for _, e := range list {
					walk(e, depth+1)
				}
			case '{':
				for _, m := range members(t, raw) {
					want = append(want, text{m.key, depth + 1, string(m.value)})
					walk(m.value, depth+1)
				}
			}
		}
		walk(data, 0)
		if !slices.Equal(got, want) {
			t.Errorf("%s\nwalked %+v\nwant   %+v", data, got, want)
		}
	})
}

type namedValue struct {
	key   string
	value json.RawMessage
}

// members reads an object with encoding/json.
func members(t *testing.T, raw []byte) (list []namedValue) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		m := namedValue{key: k.(string)}
		if err := d.Decode(&m.value); err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// FuzzList compares List with Members and Elements on valid input. On other input it must not panic.
func FuzzList(f *testing.F) {
	for _, s := range append(slices.Clone(valid), `{"a":[`, `{"a":[1}`, `{"a":[1],`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list := func(stop int) (got []string, ok bool) {
			ok = rawjson.List(b, "a",
				func(v []byte) bool { got = append(got, string(v)); return len(got) != stop },
				func(k, v []byte) { got = append(got, string(k)+"="+string(v)) })
			return got, ok
		}
		got, ok := list(0)
		list(1)
		if !json.Valid(b) {
			return
		}
		var want []string
		found := false
		for k, v := range rawjson.Members(b) {
			if string(k) != "a" || !rawjson.IsArray(v) {
				want = append(want, string(k)+"="+string(v))
				continue
			}
			found = true
			for e := range rawjson.Elements(v) {
				want = append(want, string(e))
			}
		}
		if ok != found || !slices.Equal(got, want) {
			t.Fatalf("%q: listed %q %v, want %q %v", b, got, ok, want, found)
		}
	})
}

func TestList(t *testing.T) {
	const list = `{"x":1,"tools":[{"a":"],"}, [2], "three" ],"next":"c"}`
	for _, c := range []struct {
		name, in string
		stop     int // stop after this many elements; 0 for never
		want     string
		ok       bool
	}{
		{"whole", list, 0, `x=1|{"a":"],"}|[2]|"three"|next="c"`, true},
		{"stopped", list, 2, `x=1|{"a":"],"}|[2]`, true},
		{"empty", `{"tools":[]}`, 0, ``, true},
		{"no array", `{"tools":{"a":1},"b":[1]}`, 0, `tools={"a":1}|b=[1]`, false},
		{"null", `{"tools":null}`, 0, `tools=null`, false},
		{"none", `{"tool":[1]}`, 0, `tool=[1]`, false},
		{"escaped", `{"\u0074ools":[1]}`, 0, `1`, true},
		{"no object", `[1]`, 0, ``, false},
		{"nothing", ``, 0, ``, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			n := 0
			ok := rawjson.List([]byte(c.in), "tools",
				func(v []byte) bool { got = append(got, string(v)); n++; return n != c.stop },
				func(k, v []byte) { got = append(got, string(k)+"="+string(v)) })
			if s := strings.Join(got, "|"); s != c.want || ok != c.ok {
				t.Errorf("%s %v, want %s %v", s, ok, c.want, c.ok)
			}
		})
	}
}

// FuzzAppendString checks that a string is read again as it was written.
func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "a\"b\\c\n\x00", "é\u2028😀", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw := rawjson.AppendString(nil, s)
		got, ok := rawjson.ParseString(raw)
		if want := strings.ToValidUTF8(s, "\uFFFD"); !ok || got != want || !json.Valid(raw) {
			t.Errorf("%q came back as %q from %s", s, got, raw)
		}
	})
}
