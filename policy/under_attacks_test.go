package policy

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestAttacksOnUnder tries paths that a server may read differently than Under. A row without want must be false or an
// error, because its path may lead outside of srv.
func TestAttacksOnUnder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the rows are about paths of Unix")
	}
	srv := folders(t)
	top := filepath.Dir(srv)
	for name, c := range map[string]struct {
		path, root string
		want       bool
	}{
		"up by backslashes":               {path: srv + `\..\etc\passwd`},
		"up by backslashes below":         {path: srv + `/project\..\..\etc\passwd`},
		"up by both separators":           {path: srv + `/..\etc/passwd`},
		"up in percent signs":             {path: srv + "/%2e%2e/etc/passwd"},
		"up in percent signs, capital":    {path: srv + "/%2E%2E%2Fetc%2Fpasswd"},
		"up in percent signs twice":       {path: srv + "/%252e%252e/etc/passwd"},
		"up with half a percent sign":     {path: srv + "/.%2e/etc/passwd"},
		"up in full width":                {path: srv + "/．．/etc/passwd"},
		"up with a dot leader":            {path: srv + "/‥/etc/passwd"},
		"up with one dot leaders":         {path: srv + "/․․/etc/passwd"},
		"up with small dots":              {path: srv + "/﹒﹒/etc/passwd"},
		"up by a slash of full width":     {path: srv + "/project／..／..／etc"},
		"up by a fraction slash":          {path: srv + "/x⁄..⁄..⁄etc"},
		"up by a division slash":          {path: srv + "/x∕..∕..∕etc"},
		"up with a zero width space":      {path: srv + "/.\u200b./etc/passwd"},
		"up with a joiner":                {path: srv + "/.\u200d./etc/passwd"},
		"up with a soft hyphen":           {path: srv + "/.\u00ad./etc/passwd"},
		"up with a direction mark":        {path: srv + "/\u202e../etc/passwd"},
		"up with a space behind":          {path: srv + "/.. /etc/passwd"},
		"up with a space before":          {path: srv + "/ ../etc/passwd"},
		"up with a tab behind":            {path: srv + "/..\t/etc/passwd"},
		"up with a line break":            {path: srv + "/..\n/etc/passwd"},
		"up with a parameter":             {path: srv + "/..;x=1/etc/passwd"},
		"a NUL in percent signs":          {path: srv + "/file%00/../../etc"},
		"a drive":                         {path: `C:\etc\passwd`},
		"a share":                         {path: `\\host\share\x`},
		"a share in slashes":              {path: "//host/share/x"},
		"the devices of files":            {path: "/dev/fd/0"},
		"standard input":                  {path: "/dev/stdin"},
		"a variable":                      {path: "$HOME/x"},
		"a home after srv":                {path: "~root" + srv},
		"a file URL":                      {path: "file:" + srv + "/file"},
		"a list in a text":                {path: srv + "/file:/etc/passwd", want: true}, // a name with a colon
		"two paths in a line":             {path: srv + "/file\n/etc/passwd"},
		"three dots":                      {path: srv + "/.../x", want: true},
		"a name that begins with dots":    {path: srv + "/..x", want: true},
		"a name that ends with dots":      {path: srv + "/x..", want: true},
		"percent signs that hide nothing": {path: srv + "/100%25/x", want: true},
		"other letters":                   {path: srv + "/Übung/文書", want: true},
		"another case of srv":             {path: filepath.Join(top, "Srv", "file")},
		"srv with an accent":              {path: top + "/s\u0301rv/file"},
		"root that is a file":             {path: srv + "/file/x", root: srv + "/file", want: true},
		"root with a way up":              {path: top + "/etc/passwd", root: srv + "/project/../.."}, // see below
		"root above by a link":            {path: top + "/etc/passwd", root: srv + "/out", want: true},
	} {
		t.Run("SEC-UNDER_"+name, func(t *testing.T) {
			root := cmp.Or(c.root, srv)
			got, err := Under(c.path, root)
			if name == "root with a way up" { // the owner wrote this root, and it means top
				if !got || err != nil {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if got != c.want || err != nil && c.want {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// TestUnderSeesNow changes a link between two decisions, to check that no answer is cached.
func TestUnderSeesNow(t *testing.T) {
	srv := folders(t)
	link := filepath.Join(srv, "swapped")
	for _, c := range []struct {
		target string
		want   bool
	}{{"project", true}, {"../etc", false}, {"project", true}, {"/", false}} {
		_ = os.Remove(link)
		if err := os.Symlink(c.target, link); err != nil {
			t.Skip(err)
		}
		if got, err := Under(link+"/x", srv); got != c.want || err != nil {
			t.Errorf("the link leads to %s: %v, %v", c.target, got, err)
		}
	}
}

// TestAttacksOnConditions evaluates conditions of grants on arguments that a model chose. A condition that cannot be
// decided counts as false.
func TestAttacksOnConditions(t *testing.T) {
	srv := folders(t)
	l, err := NewArgumentLanguage()
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a", 100_000)
	for name, c := range map[string]struct {
		text, args string
		holds      bool
	}{
		"a missing argument":                {text: `args.n < 10`, args: `{}`},
		"a missing argument, or another":    {text: `args.n < 10 || args.m < 10`, args: `{"m":1}`, holds: true}, // as written
		"a missing argument behind not":     {text: `!(args.path == "/etc")`, args: `{}`},
		"a missing argument within":         {text: `args.a.b == 1`, args: `{"a":{}}`},
		"null":                              {text: `args.n < 10`, args: `{"n":null}`},
		"a text for a number":               {text: `args.n < 10`, args: `{"n":"5"}`},
		"a list for a number":               {text: `args.n < 10`, args: `{"n":[5]}`},
		"a list for a text":                 {text: `args.path == "/srv"`, args: `{"path":["/srv"]}`},
		"an object for a text":              {text: `args.path.startsWith("/srv")`, args: `{"path":{"startsWith":1}}`},
		"true for a number":                 {text: `args.n == 1`, args: `{"n":true}`},
		"a fraction":                        {text: `args.n < 10`, args: `{"n":10.000000001}`},
		"a number beyond 2^53":              {text: `args.n <= 9007199254740992`, args: `{"n":9007199254740993}`},
		"a number beyond 2^64":              {text: `args.n < 100`, args: `{"n":18446744073709551617}`},
		"an exponent":                       {text: `args.n < 100`, args: `{"n":1e300}`},
		"a huge exponent":                   {text: `args.n < 100`, args: `{"n":1e400}`},
		"a negative amount":                 {text: `args.n > 0 && args.n < 100`, args: `{"n":-100000}`},
		"negative zero":                     {text: `args.n > 0`, args: `{"n":-0.0}`},
		"a key in another case":             {text: `args.n < 10`, args: `{"N":1}`},
		"a long text against a pattern":     {text: `args.s.matches("^(a+)+b$")`, args: `{"s":"` + long + `"}`},
		"lists in lists":                    {text: `args.l.all(a, args.l.all(b, args.l.all(c, a == b || b == c || true)))`, args: `{"l":[` + strings.Repeat("1,", 2000) + `1]}`},
		"a path in a list":                  {text: `under(args.paths, "` + srv + `")`, args: `{"paths":["` + srv + `/file"]}`},
		"a list with one path outside":      {text: `args.paths.all(p, under(p, "` + srv + `"))`, args: `{"paths":["` + srv + `/file","/etc/passwd"]}`},
		"a list with a path that is none":   {text: `args.paths.all(p, under(p, "` + srv + `"))`, args: `{"paths":["` + srv + `/file",7]}`},
		"a list in a list of paths":         {text: `args.paths.all(p, under(p, "` + srv + `"))`, args: `{"paths":[["` + srv + `/file"]]}`},
		"an object for a list of paths":     {text: `args.paths.all(p, under(p, "` + srv + `"))`, args: `{"paths":{"/etc/passwd":"` + srv + `"}}`},
		"one of a list, the others outside": {text: `args.paths.exists(p, under(p, "` + srv + `"))`, args: `{"paths":["relative","/etc/passwd"]}`},
		"a folder that the call names":      {text: `under(args.path, args.root)`, args: `{"path":"/etc/passwd"}`},
		"a text that breaks out of quotes":  {text: `args.s == "x"`, args: `{"s":"x\" || true || \""}`},
		"a conversion that fails":           {text: `int(args.s) < 10`, args: `{"s":"9999999999999999999999"}`},
		"a division by zero":                {text: `10 / args.n > 0`, args: `{"n":0}`},
		"an index beyond the list":          {text: `args.l[5] == 1`, args: `{"l":[1]}`},
	} {
		t.Run("SEC-GRANT_"+name, func(t *testing.T) {
			condition, err := l.Condition(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := condition.Holds(&Facts{Arguments: json.RawMessage(c.args)}); got != c.holds || err != nil && c.holds {
				t.Errorf("%v, %v; want %v", got, err, c.holds)
			}
		})
	}
	for name, text := range map[string]string{
		"no condition on the call": `server.host == "x"`, "a number": `1`, "a text": `"true"`, "huge": `args.n == 1` + strings.Repeat(" || args.n == 1", 100_000),
		"deep": strings.Repeat("(", 10_000) + "true" + strings.Repeat(")", 10_000), "a file": `file("/etc/passwd") == ""`, "two": "true; true", "a NUL": "args.s == '\x00' \x00 && true",
	} {
		t.Run("SEC-GRANT_no_condition_"+name, func(t *testing.T) {
			if c, err := l.Condition(text); err == nil {
				t.Errorf("%s compiles", c)
			}
		})
	}
}
