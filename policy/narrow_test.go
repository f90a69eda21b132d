package policy

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestNarrow(t *testing.T) {
	srv := folders(t)
	project := filepath.Join(srv, "project")
	for name, c := range map[string]struct {
		args, want, any string
		none            bool
	}{
		"nothing":               {args: `{}`, none: true},
		"no object":             {args: `[]`, none: true},
		"a path of the project": {args: `{"path":"` + project + `/deep/x.txt"}`, want: `under(args.path, "` + project + `")`},
		"a path elsewhere":      {args: `{"path":"` + srv + `/file"}`, want: `under(args.path, "` + srv + `")`},
		"a folder":              {args: `{"path":"` + srv + `/"}`, want: `under(args.path, "` + srv + `")`},
		"a new path":            {args: `{"path":"` + srv + `/new/x"}`, want: `under(args.path, "` + srv + `/new")`},
		"a file of the top":     {args: `{"path":"/none"}`, want: `args.path == "/none"`},
		"a link out":            {args: `{"path":"` + srv + `/file_out"}`, want: `args.path == "` + srv + `/file_out"`},
		"a path that climbs":    {args: `{"path":"` + project + `/../../etc/passwd"}`, want: `under(args.path, "` + filepath.Dir(srv) + `/etc")`},
		"a relative path":       {args: `{"path":"x/y"}`, want: `args.path == "x/y"`},
		"plain values":          {args: `{"a":"x","b":1,"c":true,"d":null,"e":1.5,"f":1e3,"g":18446744073709551615}`, want: `args.a == "x" && args.b == 1 && args.c == true && args.d == null && args.e == 1.5 && args.f == 1000.0 && args.g == 18446744073709551615u`},
		"what stays open":       {args: `{"repo":"x","list":[1],"o":{},"text":"` + strings.Repeat("y", 300) + `","lines":"a\nb"}`, want: `args.repo == "x"`, any: "lines list o text"},
		"only what stays open":  {args: `{"list":[1]}`, none: true},
		"names":                 {args: `{"a-b":1,"in":2,"9":3,"\"":4}`, want: `args["\""] == 4 && args["9"] == 3 && args["a-b"] == 1 && args["in"] == 2`},
		"hidden characters":     {args: `{"a":"x\u202ey","b\u200b":1}`, want: `args.a == "x\u202ey" && args["b\u200b"] == 1`},
		"quotes":                {args: `{"a":"\" || true || \"\\"}`, want: `args.a == "\" || true || \"\\"`},
		"huge":                  {args: `{"a":1e999}`, none: true},
		"many":                  {args: `{"a":"` + strings.Repeat("x", 199) + `","b":"` + strings.Repeat("x", 199) + `","c":"` + strings.Repeat("x", 199) + `","d":"` + strings.Repeat("x", 199) + `","e":"` + strings.Repeat("x", 199) + `","f":"` + strings.Repeat("x", 199) + `"}`, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := Narrow(json.RawMessage(c.args), project)
			if c.none {
				if n != nil {
					t.Errorf("%+v", n)
				}
				return
			}
			if n == nil || n.If != c.want || strings.Join(n.Any, " ") != c.any {
				t.Errorf("%+v; want %s, open: %s", n, c.want, c.any)
			}
		})
	}
}
