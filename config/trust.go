package config

import (
	"path"
	"strings"

	"github.com/tenonhq/tenon/config/tree"
)

// Trust is the section `trust`: the settings of the user and the administrator about trust in projects. A project's
// file must not contain it.
type Trust struct {
	// Projects that may loosen what the user's file says; never what the administrator's file says.
	Projects []TrustedProject `yaml:"projects" default:"[]"`
	// Ways to skip questions that nobody on this machine may use: `trust_flag` is `--trust`, `trust_env` is
	// `TENON_TRUST`, `yes` is `--yes`. Only in the administrator's file.
	Forbid []string `yaml:"forbid" enum:"trust_flag,trust_env,yes" default:"[]"`
}

// TrustedProject names a project, and what it may loosen.
type TrustedProject struct {
	// Folder of the project; links in it are resolved.
	Path string `yaml:"path"`
	// Keys that the project may loosen, such as `policy.defaults.approval` or `limits.*`; a key includes the keys
	// below it.
	Loosen []string `yaml:"loosen" default:"[]"`
}

// trust checks the list of projects that may loosen rules.
func (k *checker) trust() {
	for i, p := range k.c.Trust.Projects {
		at := tree.Index("trust.projects", i)
		if p.Path == "" && !k.failedUnder(at) {
			k.bad(at, "write {path: FOLDER, loosen: [KEY]}", "'path' is required")
		}
		for j, glob := range p.Loosen {
			where := tree.Index(at+".loosen", j)
			_, err := path.Match(glob, "")
			_, known := DirectionOf(glob)
			switch {
			case err != nil || glob == "":
				k.bad(where, "* is any text, ? one character, [a-z] a range", "'%s' is not a glob", glob)
			case !known && !declared().object(patternOf(glob)) && !strings.ContainsAny(glob, "*?["):
				k.bad(where, "keys: docs/reference/layers.md", "there is no key '%s'", glob)
			}
		}
	}
}
