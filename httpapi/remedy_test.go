package httpapi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/httpapi"
)

var (
	commandIn = regexp.MustCompile(`(^|[^a-z/-])tenon (approvals|chat|config|doctor|eval|grants|init|models|proposals|` +
		`runs?|secrets|servers?|sessions|store|tables|tools|trust|workflows) [a-z{-]`)
	flagIn = regexp.MustCompile(`(^|[ (,;'"])--[a-z]`)
	verbs  = regexp.MustCompile(`%[+#]?[a-zA-Z]`)
)

// literal returns the text of a string expression. It replaces values in it by X.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, err := strconv.Unquote(e.Value)
			return verbs.ReplaceAllString(s, "X"), err == nil
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			x, _ := literal(e.X)
			y, _ := literal(e.Y)
			return x + y, true
		}
	}
	return "X", false
}

// messages yields the texts in packages whose errors reach clients of the HTTP API, with their positions.
func messages(t *testing.T, yield func(place, text string)) {
	t.Helper()
	skip := []string{"../cmd", "../web", "../internal", "../examples", "../eval", "../docs", "../.git", "../testresults"}
	own := []string{"client.go", "socket.go", "remedy.go"} // files of tenon's own client, whose user can run commands
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skip, filepath.ToSlash(path)):
			return filepath.SkipDir
		case filepath.ToSlash(path) == "../model/servers.go": // notes about servers of models
			return nil
		case !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"),
			filepath.Dir(path) == "../httpapi" && (slices.Contains(own, d.Name()) || strings.HasPrefix(d.Name(), "remote")):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := literal(e)
			if ok {
				yield(set.Position(e.Pos()).String(), text)
			}
			return !ok
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRemedies checks that no error for a client of the HTTP API names a flag, or names a command without saying where
// to run it.
func TestRemedies(t *testing.T) {
	t.Run("RP-4_all", func(t *testing.T) {
		named := 0
		messages(t, func(place, text string) {
			if !strings.Contains(text, " ") || !commandIn.MatchString(text) && !flagIn.MatchString(text) ||
				strings.HasPrefix(text, "# ") { // a comment of a file
				return
			}
			named++
			got := httpapi.Remedy(text)
			if machine := strings.HasSuffix(got, httpapi.OnMachine); !machine &&
				(commandIn.MatchString(got) || flagIn.MatchString(got)) {
				t.Errorf("%s: %q", place, got)
			}
		})
		if named < 40 {
			t.Errorf("only %d messages name commands: the test reads too little", named)
		}
	})
	for name, tt := range map[string][2]string{
		"RP-4_limit": {"Tool use loop exceeded maximum iterations; raise limits.max_turns, or --max-turns",
			"Tool use loop exceeded maximum iterations; raise limits.max_turns of the agent, or max_turns of POST /api/v1/runs"},
		"RP-4_busy": {"session s is at work on run r; wait for its end, ask in a fork: tenon run -s s --fork, or cancel it: tenon runs cancel r",
			"session s is at work on run r; wait for its end, ask in a fork: POST /api/v1/runs with fork, or cancel it: POST /api/v1/runs/r/cancel"},
		"RP-4_login": {"sign in with 'tenon servers login x', or set servers.x.auth",
			"sign in with POST /api/v1/servers/x/login, or set servers.x.auth"},
		"RP-4_adopt": {"look at it with 'tenon store show'", "look at it with 'tenon store show'" + httpapi.OnMachine},
		"RP-4_home":  {"store x: full; choose another place with --home", "store x: full"},
		"RP-4_plain": {"a text -- of a person", "a text -- of a person"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := httpapi.Remedy(tt[0]); got != tt[1] {
				t.Errorf("got  %q\nwant %q", got, tt[1])
			}
		})
	}
	t.Run("RP-4_routes", func(t *testing.T) {
		h := knocking(t, "steps:\n  - {text: I knock., calls: [{name: pass, arguments: {}}], repeat: forever}\n")
		for commandLine, want := range map[bool]string{true: "tenon approvals grants lists", false: "GET /api/v1/grants lists"} {
			_, _, text := request(t, httpapi.New(h, httpapi.Config{CommandLine: commandLine}), "POST",
				"/api/v1/grants/revoke", "application/json", `{"id":"grt_none"}`)
			if !strings.Contains(text, want) {
				t.Errorf("%v: %s", commandLine, text)
			}
		}
	})
}
