package cli

import (
	"strings"
	"testing"
)

func TestWordParams(t *testing.T) {
	tests := map[string]struct {
		words []string
		want  string // the resulting object; after "!" a part of the error
	}{
		"none":       {nil, `{}`},
		"text":       {[]string{"k=v"}, `{"k":"v"}`},
		"empty text": {[]string{"k="}, `{"k":""}`},
		"equals":     {[]string{"k=a=b"}, `{"k":"a=b"}`},
		"json":       {[]string{"n:=3", "b:=true", `l:=["a"]`}, `{"n":3,"b":true,"l":["a"]}`},
		"big number": {[]string{"n:=9007199254740993"}, `{"n":9007199254740993}`},
		"markup":     {[]string{"k=<a&b>"}, `{"k":"<a&b>"}`},
		"quotes":     {[]string{`k"=a"b`}, `{"k\"":"a\"b"}`},
		"url":        {[]string{"u=http://x/?a:=b"}, `{"u":"http://x/?a:=b"}`},
		"bad json":   {[]string{"n:=three"}, `!is not JSON`},
		"no sign":    {[]string{"three"}, `!KEY=VALUE`},
		"no key":     {[]string{"=v"}, `!KEY=VALUE`},
		"twice":      {[]string{"a=1", "a:=2"}, `!given twice`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := wordParams(tt.words)
			if part, bad := strings.CutPrefix(tt.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Fatalf("got %s, %v; want an error with %q", got, err, part)
				}
				return
			}
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

func TestObject(t *testing.T) {
	for text, ok := range map[string]bool{`{}`: true, ` {"a":1} `: true, `null`: false, `[]`: false, `{`: false, `{} {}`: false, ``: false, `"a"`: false} {
		if _, err := object(text); (err == nil) != ok {
			t.Errorf("object(%q): %v", text, err)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"servers", "tools", "runs"}
	for given, want := range map[string]string{
		"server": "; did you mean 'servers'?", "tolos": "; did you mean 'tools'?", "RUNS": "; did you mean 'runs'?",
		"xyzzy": "; there are: runs, servers, tools",
	} {
		if got := didYouMean(given, names); got != want {
			t.Errorf("didYouMean(%s) = %q, want %q", given, got, want)
		}
	}
	if got := didYouMean("x", nil); got != "" {
		t.Errorf("without names: %q", got)
	}
}

func TestCountedRefs(t *testing.T) {
	root := newRoot(newApp(stdio{strings.NewReader(""), &strings.Builder{}, &strings.Builder{}}), nil)
	for in, want := range map[string]string{
		"runs show -1":                 "runs show last:-1",
		"sessions show -2 --tools":     "sessions show last:-2 --tools",
		"sessions show --tools -2":     "sessions show --tools last:-2",
		"run -s -1 hello":              "run -s -1 hello",
		"runs list -s -1":              "runs list -s -1",
		"runs list --session -1 -n 3":  "runs list --session -1 -n 3",
		"tools call add -1":            "tools call add -1",
		"-c t.yaml runs show -1":       "-c t.yaml runs show last:-1",
		"-q --home=h sessions show -1": "-q --home=h sessions show last:-1",
		"-o json session show -1":      "-o json session show last:-1",
		"-c runs sessions show -1":     "-c runs sessions show last:-1",
		"-c runs run -s -1 hello":      "-c runs run -s -1 hello",
		"-c":                           "-c",
		"- runs -1":                    "- runs -1",
	} {
		if got := strings.Join(countedRefs(root, strings.Fields(in)), " "); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}
