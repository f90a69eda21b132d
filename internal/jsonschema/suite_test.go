package jsonschema

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// suiteDrafts are the folders of JSON-Schema-Test-Suite, and the drafts of their schemas.
var suiteDrafts = map[string]int{"draft4": 4, "draft6": 6, "draft7": 7, "draft2019-09": 2019, "draft2020-12": 2020}

// knownFailures lists the tests that this package does not pass, at most 20. Each has a reason.
var knownFailures = []string{
	// In the suite, a custom metaschema decides whether format is an assertion. Here, Options.Formats decides.
	"draft2020-12/optional/format-assertion.json: schema that uses custom metaschema" +
		" with format-assertion: false: format-assertion: false: invalid string",
	"draft2020-12/optional/format-assertion.json: schema that uses custom metaschema" +
		" with format-assertion: true: format-assertion: true: invalid string",
	// RE2 reads \a as the control character.
	"draft2020-12/optional/format/ecmascript-regex.json: \\a is not an ECMA 262 cont" +
		"rol escape: when used as a pattern",
	// 1.0 is an integer, as in draft 6 and later.
	"draft4/optional/zeroTerminatedFloats.json: some languages do not distinguish be" +
		"tween different types of numeric value: a float is not an integer even without fractional part",
	// contentEncoding and contentMediaType are annotations, as in 2019-09 and later.
	"draft7/optional/content.json: validation of binary string-encoding: an invalid " +
		"base64 string (% is not a valid character)",
	"draft7/optional/content.json: validation of binary-encoded media type documents" +
		": a validly-encoded invalid JSON document",
	"draft7/optional/content.json: validation of binary-encoded media type documents" +
		": an invalid base64 string that is valid JSON",
	"draft7/optional/content.json: validation of string-encoded content based on med" +
		"ia type: an invalid JSON document",
}

// maxKnownFailures is the limit that the project promises.
const maxKnownFailures = 20

// TestJSONSchemaSuite runs the public suite (RP-9), which is in the source package of Python's jsonschema. The
// mandatory tests and the optional ones of formats, patterns and numbers count; make peers installs them.
func TestJSONSchemaSuite(t *testing.T) {
	if os.Getenv("TENON_PEERS") == "" {
		t.Skip("runs with make peers, which installs JSON-Schema-Test-Suite")
	}
	found, err := filepath.Glob(filepath.Join(os.Getenv("TENON_PEERS_DIR"), "schemasuite", "jsonschema-*", "json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("JSON-Schema-Test-Suite is missing, make peers installs it: %v %v", found, err)
	}
	if len(knownFailures) > maxKnownFailures {
		t.Errorf("%d known failures, at most %d are allowed", len(knownFailures), maxKnownFailures)
	}
	failed, passed := []string{}, 0
	for folder, draft := range suiteDrafts {
		documents := remotes(t, filepath.Join(found[0], "remotes"), folder)
		dir := filepath.Join(found[0], "tests", folder)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".json" {
				return err
			}
			name, _ := filepath.Rel(filepath.Dir(dir), path)
			bad, n := suiteFile(t, path, filepath.ToSlash(name), Options{Draft: draft, Documents: documents,
				Formats: strings.Contains(filepath.ToSlash(name), "optional/format/")})
			failed, passed = append(failed, bad...), passed+n
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(failed)
	for _, name := range failed {
		if !slices.Contains(knownFailures, name) {
			t.Errorf("fails: %s", name)
		}
	}
	for _, name := range knownFailures {
		if !slices.Contains(failed, name) {
			t.Errorf("passes now, remove it from the list: %s", name)
		}
	}
	t.Logf("%d tests pass, %d fail", passed, len(failed))
	if passed < 6000 {
		t.Errorf("%d tests pass, the suite has more", passed)
	}
}

// remotes are the documents that schemas of the suite refer to.
func remotes(t *testing.T, dir, draft string) map[string]json.RawMessage {
	t.Helper()
	documents := map[string]json.RawMessage{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		documents["http://localhost:1234/"+filepath.ToSlash(name)] = raw
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", draft, err)
	}
	return documents
}

type suiteGroup struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

// suiteFile runs the tests of one file. It returns the names of failed tests, and the number of passed ones.
func suiteFile(t *testing.T, path, name string, o Options) (failed []string, passed int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, g := range groups {
		s, err := Compile(g.Schema, o)
		for _, test := range g.Tests {
			where := name + ": " + g.Description + ": " + test.Description
			if err != nil {
				failed = append(failed, where)
				t.Logf("%s: %v", where, err)
				continue
			}
			v, decodeErr := Decode(test.Data)
			if decodeErr != nil {
				t.Fatalf("%s: %v", where, decodeErr)
			}
			got := s.Validate(v)
			if got == nil && !test.Valid && reportsFormat(s) {
				continue // idn-hostname: the report says that it is not checked
			}
			if (got == nil) != test.Valid {
				failed = append(failed, where)
				t.Logf("%s: %v; unchecked %v", where, got, s.Unchecked())
				continue
			}
			passed++
		}
	}
	return failed, passed
}

// reportsFormat reports whether the schema has a format that is not checked, and its report says so.
func reportsFormat(s *Schema) bool {
	return slices.ContainsFunc(s.Unchecked(), func(u Unchecked) bool {
		return u.Reason == `the format "idn-hostname" is not known`
	})
}
