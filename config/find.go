package config

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config/tree"
)

// Options says where to look for a configuration. The zero value means the places that the command line uses.
type Options struct {
	File  string    // -c: a file, or "-" for stdin; if empty, tenon looks for one
	Stdin io.Reader // if nil, stdin of the process
	Dir   string    // working folder; if empty, of the process
	Home  string    // home folder; if empty, the user's
	// NoProject ignores the project's file: tenon does not look for one, and TENON_CONFIG has no effect. It is for
	// programs that other programs start in untrusted folders.
	NoProject bool
	NoUser    bool // ignore the user's own file and its .env
	// Admin is the administrator's file. If empty, it is /etc/tenon/config.yaml on Linux and macOS, and there is none
	// on other systems. No environment variable changes it.
	Admin string
	// CheckOwner replaces the check that only root can write the administrator's file and
	// its folder. It is for tests.
	CheckOwner func(path string, st fs.FileInfo) error
	// NoTables does not read the tables of tool_tables. It is for commands that inspect or repair a broken table.
	NoTables bool
	// KeepUnset keeps references to variables that are not set, and names of files that do not exist, instead of
	// reporting them. It is for commands that write the configuration in another form.
	KeepUnset bool
	// LookupEnv replaces os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Keyring replaces the system's keyring, where `keyring` and `prompt` keep secrets.
	Keyring Ring

	found bool    // tenon found the file itself
	held  *Config // the running configuration: files that it has read are not read again
	// planned are the contents of workflow files that are not written yet, by path: see [Edits].Texts.
	planned map[string][]byte
}

func (o Options) withDefaults() (Options, error) {
	if o.Stdin == nil {
		o.Stdin = os.Stdin
	}
	if o.Admin == "" {
		o.Admin = adminPath()
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Home == "" {
		// With a relative home folder, files in the working folder would count as the user's own.
		if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
			o.Home = home
		}
	}
	var err error
	if o.Dir == "" {
		o.Dir, err = os.Getwd()
	} else {
		o.Dir, err = filepath.Abs(o.Dir)
	}
	if err != nil {
		return o, &tenon.Error{Code: tenon.CodeConfig, Message: "the working folder: " + err.Error(), Err: err}
	}
	return o, nil
}

// agentName is the name of the file of a HoloDeck agent.
const agentName = "agent.yaml"

var (
	ownNames     = []string{"tenon.yaml", "tenon.yml"}
	foreignNames = []string{".mcp.json", "mcp.json", ".vscode/mcp.json"}
)

// choose returns the file to read: a path, "-" for stdin, or "" if there is none. found says that tenon found the
// file itself.
func (o Options) choose() (path string, found bool) {
	if o.File != "" {
		return o.abs(o.File), false
	}
	if o.NoProject {
		return "", false
	}
	if env, ok := o.LookupEnv("TENON_CONFIG"); ok && env != "" {
		return o.abs(env), false
	}
	for dir := o.Dir; ; dir = filepath.Dir(dir) {
		for _, name := range ownNames {
			if p := filepath.Join(dir, name); isFile(p) {
				return p, true
			}
		}
		// An agent is a complete configuration, so the nearest file counts. The other formats are files of editors,
		// which often are next to a tenon.yaml or below it.
		// agent.yaml may also belong to another program.
		if p := filepath.Join(dir, agentName); dir == o.Dir && isFile(p) && isForeign(p) {
			return p, true
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == o.Home || dir == filepath.Dir(dir) {
			break
		}
	}
	for _, name := range foreignNames {
		if p := filepath.Join(o.Dir, filepath.FromSlash(name)); isFile(p) {
			return p, true
		}
	}
	return "", false
}

// strangeAgent describes an agent.yaml in the working folder that was not recognised as an agent, or returns "".
func (o Options) strangeAgent() string {
	if o.NoProject || !isFile(filepath.Join(o.Dir, agentName)) {
		return ""
	}
	return "; " + agentName + " is there, but is no agent that tenon reads: it needs the keys 'model' (a map) and " +
		"'instructions'"
}

// FileToWrite returns the path of the file that [PlanEdit] would change. If there is none, or only another program's
// file was found, it returns the path of a new tenon.yaml in the working folder.
func FileToWrite(o Options) string {
	o, err := o.withDefaults()
	if err != nil {
		return ownNames[0]
	}
	path, found := o.choose()
	if path == "" || found && isForeign(path) {
		return filepath.Join(o.Dir, ownNames[0])
	}
	return path
}

func (o Options) abs(p string) string {
	if p == "-" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(o.Dir, p)
}

// userFile returns the path of the user's own file, whether or not it exists.
func (o Options) userFile() string {
	if dir, ok := o.LookupEnv("XDG_CONFIG_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "tenon", "config.yaml")
	}
	if o.Home == "" {
		return ""
	}
	return filepath.Join(o.Home, ".config", "tenon", "config.yaml")
}

// label returns the name of a file as a person in the working folder would write it.
func (o Options) label(path string) string {
	if rel, err := filepath.Rel(o.Dir, path); err == nil &&
		!strings.HasPrefix(rel, ".."+string(filepath.Separator)+"..") {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(path)
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// read returns the bytes of a chosen file, up to one more than the limit.
func (o Options) read(ctx context.Context, path string) ([]byte, error) {
	if path == "-" {
		b, err := io.ReadAll(io.LimitReader(o.Stdin, tree.MaxBytes+1))
		if err != nil {
			return nil, &tenon.Error{Code: tenon.CodeConfig, Message: "stdin: " + err.Error(), Err: err}
		}
		return b, nil
	}
	b, err := readUpTo(ctx, path, tree.MaxBytes+1)
	if err == nil || tenon.ErrorCode(err) == tenon.CodeCancelled {
		return b, err
	}
	message := reason(err)
	if os.IsNotExist(err) {
		message = fmt.Sprintf("no file %s; 'tenon init' writes a tenon.yaml", o.label(path))
	}
	return nil, &tenon.Error{Code: tenon.CodeConfig, Message: message, Err: err}
}

// FileOf returns the absolute path of the project's file that [Load] would read, or "" if there is none or it is
// stdin.
func FileOf(o Options) string {
	o, err := o.withDefaults()
	if err != nil {
		return ""
	}
	path, _ := o.choose()
	if path == "-" {
		return ""
	}
	return path
}
