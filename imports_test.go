package tenon_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tenonhq/tenon"

// arrows is the import graph: the packages of this module that each package may import, in addition to the
// root package. An unlisted package must not exist. Tests may import more.
var arrows = map[string][]string{
	".":      {"internal/rawjson"},
	"policy": {"internal/rawjson", "internal/lazyregexp"},
	"agent":  {"policy", "internal/rawjson"}, // the config struct of an agent's rules

	"internal/rawjson":     {},
	"internal/lazyregexp":  {},
	"internal/exactjson":   {"internal/rawjson"},
	"internal/jsonschema":  {},
	"internal/spread":      {},
	"internal/capacity":    {},
	"internal/patience":    {},
	"internal/garbage":     {},
	"internal/deepstack":   {},
	"internal/quick":       {"internal/garbage", "internal/quick/first"},
	"internal/quick/first": {"internal/deepstack"},
	"internal/outbound":    {},
	"internal/forward":     {"internal/rawjson"},
	"internal/wholefile":   {},
	"internal/filelock":    {},
	"internal/privatefile": {},
	"trust":                {"internal/filelock", "internal/wholefile", "internal/privatefile"},
	"internal/protect":     {"internal/rawjson"},
	"internal/sse":         {},
	"jsonrpc":              {"internal/rawjson"},
	"transport":            {"jsonrpc", "internal/sse"},
	"mcp":                  {"internal/lazyregexp", "internal/rawjson", "internal/spread", "jsonrpc", "transport", "internal/patience"},
	"catalog":              {"policy", "internal/jsonschema", "internal/rawjson", "internal/spread"},
	"table":                {"internal/rawjson", "internal/wholefile", "internal/safezip"},
	"workflow":             {"policy", "agent", "catalog", "internal/rawjson", "internal/safezip", "internal/lazyregexp"}, // a call's life, and the request of a step
	"workflow/runner":      {"agent", "catalog", "engine", "policy", "store", "store/pieces", "view", "workflow"},
	"servers/oauth":        {"internal/filelock"},
	"servers/registry":     {},
	"internal/authserver":  {},
	"internal/accesstoken": {},
	"internal/keyring":     {},
	"servers":              {"internal/rawjson", "internal/deepstack", "catalog", "policy", "jsonrpc", "mcp", "transport", "servers/oauth", "internal/lazyregexp"}, // catalog: the config structs of a server's tools

	"model":           {"internal/cloudtoken", "internal/lazyregexp", "internal/rawjson", "internal/sse"},
	"model/anthropic": {"model", "internal/rawjson", "internal/sse"},
	"model/bedrock":   {"model", "internal/awsauth", "internal/rawjson"},
	"model/ollama":    {"model", "internal/rawjson"},
	"model/gemini":    {"model", "internal/rawjson"},
	"model/openai":    {"model", "internal/rawjson", "internal/sse"},
	"model/react":     {"model", "model/textcall", "internal/lazyregexp", "internal/rawjson", "internal/template"},
	"model/textcall":  {"internal/lazyregexp", "internal/rawjson"},
	"model/script":    {"model", "internal/rawjson", "internal/lazyregexp"},
	"record":          {"model", "model/anthropic", "mcp", "internal/exactjson"},

	"view":      {"agent", "engine", "workflow", "internal/rawjson"},
	"telemetry": {"agent", "view", "internal/rawjson"},

	"store":             {},
	"store/signed":      {"store", "internal/privatefile"},
	"store/forms":       {"store", "store/signed"},
	"store/pieces":      {"store"},
	"store/sqlite":      {"store", "store/forms", "store/signed", "internal/privatefile"},
	"store/postgres":    {"store", "store/forms", "store/signed"},
	"store/copying":     {"store", "store/forms"},
	"store/storetest":   {"store", "store/signed"},
	"engine":            {},
	"engine/local":      {"engine", "store", "internal/deepstack"},
	"engine/enginetest": {"engine"},

	"config/tree":       {"internal/lazyregexp"},
	"compat":            {"config/tree", "servers", "internal/lazyregexp"},
	"compat/aidk":       {"compat", "config/tree", "servers"},
	"compat/editors":    {"compat", "config/tree", "servers", "internal/lazyregexp"},
	"compat/holodeck":   {"agent", "compat", "config/tree", "model", "policy", "servers", "internal/lazyregexp"},
	"compat/researchai": {"compat", "config/tree", "servers"},
	"compat/trustgraph": {"catalog", "compat", "config/tree", "servers", "internal/lazyregexp"},
	"config":            {"config/tree", "compat", "compat/aidk", "compat/editors", "compat/holodeck", "compat/researchai", "compat/trustgraph", "agent", "catalog", "model", "model/react", "policy", "schedule", "servers", "table", "trust", "workflow", "internal/accesstoken", "internal/keyring", "internal/outbound", "internal/privatefile", "internal/protect", "internal/wholefile", "internal/filelock", "internal/safezip", "internal/lazyregexp"}, // outbound: what a private address is
	"host":              {"agent", "catalog", "config", "engine", "engine/local", "executor", "internal/deepstack", "mcp", "model", "model/anthropic", "model/bedrock", "model/gemini", "model/ollama", "model/openai", "model/react", "model/script", "model/textcall", "policy", "record", "schedule", "servers", "servers/oauth", "store", "store/copying", "store/pieces", "store/postgres", "store/signed", "store/sqlite", "table", "telemetry", "transport", "view", "workflow", "workflow/runner", "internal/keyring", "internal/exactjson", "internal/filelock", "internal/outbound", "internal/patience", "internal/privatefile", "internal/protect", "internal/rawjson", "internal/spread", "internal/safezip", "internal/wholefile", "mcp/elicit", "pins", "store/sealed", "transcript", "internal/lazyregexp"},

	"eval": {"agent", "catalog", "config", "host", "view"},

	"web":     {},
	"docs":    {},
	"httpapi": {"agent", "catalog", "config", "engine", "host", "jsonrpc", "mcp", "model", "policy", "servers", "servers/registry", "telemetry", "view", "internal/accesstoken", "internal/exactjson", "internal/outbound", "internal/rawjson", "internal/safezip", "internal/sse", "pins", "transcript", "internal/lazyregexp"},

	"gateway": {"agent", "catalog", "config", "engine", "host", "jsonrpc", "mcp", "policy", "servers", "transport", "view", "internal/lazyregexp", "internal/rawjson"},

	"internal/awsauth":         {"internal/wholefile"},
	"internal/clientfile":      {"internal/rawjson"},
	"internal/cloudtoken":      {},
	"internal/history":         {},
	"internal/testserver":      {"internal/rawjson", "mcp", "transport", "jsonrpc"},
	"internal/clitest":         {},
	"internal/localmodel":      {},
	"internal/longtest":        {},
	"internal/markdown":        {},
	"internal/tui":             {"internal/markdown"},
	"internal/cast":            {"internal/pty"},
	"internal/pictures":        {"internal/cast", "internal/pty"},
	"internal/release":         {},
	"internal/docsite":         {},
	"internal/service":         {"internal/template"},
	"internal/template":        {},
	"internal/pty":             {},
	"cmd/tenon":                {"internal/quick", "internal/cli"},
	"internal/cli":             {"agent", "catalog", "config", "docs", "engine", "eval", "gateway", "host", "httpapi", "internal/clientfile", "internal/exactjson", "internal/forward", "internal/privatefile", "internal/rawjson", "internal/testserver", "internal/wholefile", "internal/filelock", "internal/markdown", "internal/tui", "model", "model/script", "policy", "record", "servers", "servers/registry", "table", "telemetry", "transport", "trust", "view", "web", "workflow", "internal/safezip", "internal/service", "mcp/elicit", "pins", "transcript", "internal/lazyregexp"},
	"internal/safezip":         {},
	"internal/safezip/ziptest": {},
	"mcp/elicit":               {"catalog", "internal/exactjson", "internal/rawjson"},
	"store/sealed":             {"store"},
	"schedule":                 {},
	"pins":                     {"policy", "store", "internal/rawjson", "internal/spread"},
	"transcript":               {"agent", "engine", "policy", "store", "view", "workflow", "internal/exactjson", "internal/lazyregexp"},
	"executor":                 {"agent", "catalog", "engine", "mcp", "mcp/elicit", "model", "pins", "policy", "servers", "store", "view", "workflow", "internal/exactjson", "internal/patience"},
}

// forPrograms lists the packages that the programs in examples/go may import, in addition to the root package.
var forPrograms = []string{"config", "host", "httpapi", "view"}

// isExample reports whether a package is a program in examples/go.
func isExample(k *pkg) bool { return strings.HasPrefix(k.dir, "examples/go/") }

// homes lists the packages that may import a third-party module. Each module has one importing package, so
// that it can be replaced; exceptions state a reason.
var homes = map[string][]string{
	"cel.dev/cel-go":                           {"policy"},
	"charm.land/bubbletea/v2":                  {"internal/tui"},
	"github.com/charmbracelet/x/ansi":          {"internal/markdown"},
	"github.com/apache/arrow-go/v18":           {"table"},
	"github.com/coder/websocket":               {"transport"},
	"github.com/dlclark/regexp2/v2":            {"internal/jsonschema"},
	"github.com/go-jose/go-jose/v4":            {"internal/accesstoken"},
	"github.com/google/jsonschema-go":          {"catalog"}, // schemas of Go types
	"github.com/jackc/pgx/v5":                  {"store/postgres"},
	"github.com/kljensen/snowball":             {"catalog"},
	"github.com/santhosh-tekuri/jsonschema/v6": {"internal/jsonschema"},
	"github.com/robfig/cron/v3":                {"schedule"},
	"github.com/spf13/cobra":                   {"internal/cli"},
	"github.com/spf13/pflag":                   {"internal/cli"}, // cobra's flags
	"github.com/zalando/go-keyring":            {"internal/keyring"},
	"go.yaml.in/yaml/v4":                       {"config/tree", "config", "model/script"},                                                          // config: edits of the text at YAML's places; scripts are files of their own, without tenon.yaml's rules
	"modernc.org/libc":                         {"table"},                                                                                          // the C library of SQLite's C interface
	"modernc.org/sqlite":                       {"store/sqlite", "table"},                                                                          // table asks its own, temporary databases, by the C interface: database/sql has no authorizer
	"golang.org/x/sys":                         {"store/sqlite", "transport", "internal/cli", "internal/pty", "internal/filelock", "internal/tui"}, // the operating system: locks, process groups, terminals
	"golang.org/x/oauth2":                      {"internal/cloudtoken"},
	"golang.org/x/term":                        {"internal/cli", "internal/tui"},
	"golang.org/x/text":                        {"transport", "catalog", "internal/safezip", "internal/jsonschema"}, // transport: character encodings of servers that speak no UTF-8; catalog: normal forms of keys; jsonschema: the validator's errors
	"github.com/google/go-cmp":                 {"store/storetest", "engine/enginetest"},                            // the suites are tests in packages of their own
}

// TestNoTemplateLibrary checks that no package executes a template of the standard library. Otherwise the linker would
// keep all exported methods of all types, which are 6 MB (see internal/template).
func TestNoTemplateLibrary(t *testing.T) {
	for _, k := range packages(t) {
		if k.dir == "internal/release" {
			continue
		}
		for name, f := range k.files {
			for _, i := range f.Imports {
				if i.Path.Value == `"text/template"` || i.Path.Value == `"html/template"` {
					t.Errorf("%s imports %s: use internal/template", name, i.Path.Value)
				}
			}
		}
	}
}

type pkg struct {
	dir   string
	files map[string]*ast.File // without tests
	lines map[string]int
	doc   string
}

// packages parses all packages of the module. It omits nested modules and figures, which measure other
// programs and are not part of the product. It also omits web/app, where browser tests write and remove
// folders.
func packages(t *testing.T) []*pkg {
	t.Helper()
	byDir := map[string]*pkg{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if p != "." && (strings.HasPrefix(name, ".") || name == "testdata" ||
				p == filepath.Join("internal", "figures") || p == filepath.Join("web", "app")) {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); p != "." && err == nil {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, src, parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(p))
		k := byDir[dir]
		if k == nil {
			k = &pkg{dir: dir, files: map[string]*ast.File{}, lines: map[string]int{}}
			byDir[dir] = k
		}
		k.lines[p] = strings.Count(string(src), "\n")
		if strings.HasSuffix(p, "_test.go") {
			return nil
		}
		k.files[p] = f
		if f.Doc != nil {
			k.doc += f.Doc.Text()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []*pkg
	for _, k := range byDir {
		if len(k.files) > 0 {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, func(a, b *pkg) int { return strings.Compare(a.dir, b.dir) })
	return list
}

func TestImportGraph(t *testing.T) {
	for _, k := range packages(t) {
		allowed, ok := arrows[k.dir]
		if isExample(k) {
			allowed, ok = forPrograms, true
		}
		if !ok {
			t.Errorf("package %s is not in the import graph", k.dir)
			continue
		}
		for file, f := range k.files {
			for _, imp := range f.Imports {
				p := strings.Trim(imp.Path.Value, `"`)
				switch {
				case p == module:
				case strings.HasPrefix(p, module+"/"):
					if own := strings.TrimPrefix(p, module+"/"); !slices.Contains(allowed, own) {
						t.Errorf("%s: package %s may not import %s", file, k.dir, own)
					}
				case strings.Contains(strings.Split(p, "/")[0], "."):
					home := ""
					for m := range homes {
						if p == m || strings.HasPrefix(p, m+"/") {
							home = m
						}
					}
					if home == "" || !slices.Contains(homes[home], k.dir) {
						t.Errorf("%s: package %s may not import %s", file, k.dir, p)
					}
				}
			}
		}
	}
}

// TestPackageComments checks that every package comment explains the package's place in the flow, and that
// the architecture document covers the way of an argument from configuration to wire.
func TestPackageComments(t *testing.T) {
	t.Run("TG-44", func(t *testing.T) {
		for _, k := range packages(t) {
			if n := strings.Count(strings.TrimSpace(k.doc), "\n") + 1; n < 10 && !isExample(k) {
				t.Errorf("package %s has a comment of %d lines, want 10 that explain its place in the flow", k.dir, n)
			}
		}
		text, err := os.ReadFile("docs/architecture.md")
		if err != nil {
			t.Fatal(err)
		}
		_, way, ok := strings.Cut(string(text), "### The way of an argument\n")
		if !ok {
			t.Fatal("docs/architecture.md has no section on the way of an argument")
		}
		for _, stop := range []string{"`servers.NAME` and `tools.NAME`", "`catalog.Shape`",
			"`catalog.Snapshot.Prepare`", "`Decision.Arguments`", "`ToolCommand`", "`tools/call`", "wire"} {
			if _, way, ok = strings.Cut(way, stop); !ok {
				t.Errorf("docs/architecture.md: the way of an argument does not mention %s", stop)
			}
		}
	})
}

// TestEntities checks that the protocol's entities are exported types with comments.
func TestEntities(t *testing.T) {
	t.Run("HD-ENT-1", func(t *testing.T) {
		all := map[string]*ast.TypeSpec{}
		commented := map[string]bool{}
		for _, k := range packages(t) {
			for _, f := range k.files {
				for _, d := range f.Decls {
					g, ok := d.(*ast.GenDecl)
					if !ok {
						continue
					}
					for _, s := range g.Specs {
						if ts, ok := s.(*ast.TypeSpec); ok {
							name := strings.TrimPrefix(k.dir+"."+ts.Name.Name, "..")
							all[name], commented[name] = ts, g.Doc != nil || ts.Doc != nil
						}
					}
				}
			}
		}
		for entity, name := range map[string]string{
			"server": "servers.Server", "its entry": "servers.Config", "session": "Session", "content block": "Content",
			"stdio": "transport.Stdio", "HTTP+SSE": "transport.SSE", "WebSocket": "transport.WebSocket",
			"Streamable HTTP": "transport.HTTP",
		} {
			switch ts := all[name]; {
			case ts == nil || !ts.Name.IsExported():
				t.Errorf("%s: there is no type %s", entity, name)
			case !commented[name]:
				t.Errorf("%s: %s has no comment", entity, name)
			}
		}
	})
}

// TestLibrary checks that no importable package depends on the command.
func TestLibrary(t *testing.T) {
	t.Run("RA-1", func(t *testing.T) {
		for _, k := range packages(t) {
			for file, f := range k.files {
				for _, i := range f.Imports {
					if p := strings.Trim(i.Path.Value, `"`); strings.HasPrefix(p, module+"/cmd/") {
						t.Errorf("%s imports %s", file, p)
					}
				}
			}
		}
	})
}

func TestExportedNamesHaveComments(t *testing.T) {
	for _, k := range packages(t) {
		for file, f := range k.files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
						t.Errorf("%s: %s has no comment", file, d.Name.Name)
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
							t.Errorf("%s: %s has no comment", file, ts.Name.Name)
						}
					}
				}
			}
		}
	}
}

// exportedReceiver reports whether a function is part of the API: a method of an
// unexported type is not.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}

// TestFileLength limits the length of files. The usual length is 80 to 400 lines; the limit is 600.
func TestFileLength(t *testing.T) {
	for _, k := range packages(t) {
		for file, n := range k.lines {
			if n > 600 {
				t.Errorf("%s has %d lines, want at most 600", file, n)
			}
		}
	}
}

func TestModuleFile(t *testing.T) {
	b, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		switch word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "replace", "exclude", "tool":
			t.Errorf("go.mod: %q; go install refuses modules that have it", path.Clean(line))
		}
	}
}
