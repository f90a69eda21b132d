package config

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/trust"
)

// command is a program that the configuration starts.
type command struct {
	argv []string
	dir  string // its working folder
	path string // its PATH; "" is the PATH of this process
	env  map[string]string
}

// CommandFiles returns the absolute paths of the scripts and programs that a command loads, as far as its arguments
// name them. path is the command's place in the configuration: servers.NAME, secrets.NAME or models.NAME.api_key. A
// person approves the contents of these files, and each start compares them.
func (c *Config) CommandFiles(path string) []string {
	if command, ok := c.commandAt(path); ok {
		return c.load(path, command)
	}
	return nil
}

// serverCommand returns the command of a server with its working folder and environment.
func (c *Config) serverCommand(name string, s servers.Config) command {
	env := map[string]string{}
	for k, v := range c.envs[name] {
		env[k] = v
	}
	for k, v := range s.Env {
		env[k] = v
	}
	dir := cmp.Or(s.Cwd, c.Dir)
	return command{argv: append([]string{s.Command}, s.Args...), dir: dir, path: env["PATH"], env: env}
}

// load finds the files of a command. It remembers the files that it found at its first call for a key.
func (c *Config) load(key string, cmd command) []string {
	files, outputs := c.filesOf(cmd)
	if c.files == nil {
		return files
	}
	c.files.mu.Lock()
	defer c.files.mu.Unlock()
	if was, known := c.files.commands[key]; known {
		return was
	}
	c.files.commands[key] = files
	for _, file := range outputs {
		c.files.outputs[[2]string{key, file}] = true
	}
	return files
}

// checkCommand refuses to start a command if one of its scripts differs from the approved version. If nobody was
// asked about the command, that is the version at the first look. The error has code denied. At a restart, files that
// the command may have written itself are not compared: the next process of tenon shows their changes.
func (c *Config) checkCommand(key string, restart bool) error {
	if c.files == nil {
		return nil
	}
	cmd, ok := c.commandAt(key)
	if !ok {
		return nil
	}
	was := c.load(key, cmd)
	now, outputs := c.filesOf(cmd)
	for _, file := range now {
		if !slices.Contains(was, file) && !(restart && slices.Contains(outputs, file)) {
			return tenon.Errorf(tenon.CodeDenied, "%s is not started: %s is new since the configuration was read; "+
				"run tenon again to see the difference", key, file)
		}
	}
	for _, file := range was {
		if restart && c.isOutput(key, file) && (slices.Contains(outputs, file) || !slices.Contains(now, file)) {
			continue
		}
		if !c.Found && !c.Knows(file) && isUnreadable(file) { // do not compare an unreadable file of the user
			continue
		}
		if err := c.files.check(file, trust.MaxBytes); err != nil {
			return tenon.Errorf(tenon.CodeDenied, "%s is not started: %w", key, err)
		}
	}
	return nil
}

// CheckServer compares the scripts of one server with their first versions. The error has code denied.
func (c *Config) CheckServer(name string) error { return c.checkCommand("servers."+name, true) }

// isOutput reports whether a file is compared only because an argument names it, so that the command may write it.
func (c *Config) isOutput(key, file string) bool {
	c.files.mu.Lock()
	defer c.files.mu.Unlock()
	return c.files.outputs[[2]string{key, file}]
}

// MayWrite reports whether the command of an entry may write a file of the project itself, because the file belongs to
// the project only by an argument that names it. name is the file's name in [Config.Project].
func (c *Config) MayWrite(entry, name string) bool {
	if c.files == nil {
		return false
	}
	p := &projectFiles{c: c}
	if dir, err := filepath.EvalSymlinks(c.Dir); err == nil {
		p.out.Dir = dir
	}
	c.files.mu.Lock()
	defer c.files.mu.Unlock()
	for of := range c.files.outputs {
		if of[0] == entry && p.name(of[1]) == name {
			return true
		}
	}
	return false
}

// writesFlag matches the text before a file that a command probably writes: a redirection, or a flag or a variable such
// as --log, -o or SRV_LOG.
var writesFlag = lazyregexp.New(`(?i)(>|\b-o|(log|out|output|trace|record|dump)[a-z_-]*\s*[= ])\s*["']?(\./)?$`)

// NamesOutput reports whether the command of an entry names a file of the project like one that it writes. name is the
// file's name in [Config.Project].
func (c *Config) NamesOutput(entry, name string) bool {
	cmd, ok := c.commandAt(entry)
	if !ok {
		return false
	}
	texts := []string{strings.Join(cmd.argv, " ")}
	for key, value := range cmd.env {
		texts = append(texts, key+"="+value)
	}
	for _, text := range texts {
		for at := 0; ; {
			i := strings.Index(text[at:], name)
			if i < 0 {
				break
			}
			if writesFlag().MatchString(text[:at+i]) {
				return true
			}
			at += i + len(name)
		}
	}
	return false
}

// isUnreadable reports whether a file exists that this user cannot read.
func isUnreadable(path string) bool {
	f, err := os.Open(path)
	if err == nil {
		_ = f.Close() // nothing was read
	}
	return errors.Is(err, fs.ErrPermission)
}

// CheckCommands compares the scripts of all commands of the project with their first versions. The error has code
// denied.
func (c *Config) CheckCommands() error {
	for key := range c.commands() {
		if err := c.checkCommand(key, false); err != nil {
			return err
		}
	}
	return nil
}

// maxWords is the maximum number of words of a command that are looked up as files.
const maxWords = 2000

// filesOf finds the files of a command. outputs are the files among them that are neither code nor settings by place,
// name or content.
func (c *Config) filesOf(cmd command) (files, outputs []string) {
	if len(cmd.argv) == 0 {
		return nil, nil
	}
	add := func(path string, isCode bool) {
		path = filepath.Clean(path)
		isCode = isCode || looksLikeCode(path)
		if isCode {
			outputs = slices.DeleteFunc(outputs, func(file string) bool { return file == path })
		}
		if !slices.Contains(files, path) && (isCode || !isData(path)) {
			files = append(files, path)
			if !isCode {
				outputs = append(outputs, path)
			}
		}
	}
	program := c.program(cmd)
	if _, relative := c.localFile(cmd.argv[0], cmd.dir); program != "" && (c.inside(program) || relative &&
		isPathName(cmd.argv[0])) {
		add(program, true)
	}
	dirs, count := c.argumentFolders(cmd), 0
	look := func(text string, isCode bool) {
		for _, word := range fileWords(text) {
			if count++; count > maxWords {
				return
			}
			for _, dir := range dirs {
				if path, ok := c.localFile(word, dir); ok {
					add(path, isCode)
				}
			}
		}
	}
	places := codePlaces(append([]string{cmp.Or(program, cmd.argv[0])}, cmd.argv[1:]...), func(arg string) bool {
		_, ok := c.localFile(arg, cmd.dir)
		return ok
	})
	for i, arg := range cmd.argv[1:] {
		if count < maxWords && !strings.HasPrefix(arg, "-") && !strings.ContainsAny(arg, `/\`) {
			// a program that another program starts, such as env, strace or timeout
			program := c.program(command{argv: []string{arg}, dir: cmd.dir, path: cmd.path})
			if program != "" && c.inside(program) {
				add(program, true)
			}
		}
		look(arg, places[i+1] || strings.ContainsAny(arg, " \t\n") || i > 0 && loadsFlag(cmd.argv[i]) || loadsFlag(arg))
	}
	for name, value := range cmd.env {
		look(value, slices.Contains(loadingVariables, name))
	}
	slices.Sort(files)
	return files, outputs
}

// maxArgumentFolders is the maximum number of folders in which a command's files are looked up.
const maxArgumentFolders = 16

// argumentFolders returns the working folder of a command and the folders that its arguments name, such as the folder
// of env -C, make -C or perl -I. A relative path may begin in each of them.
func (c *Config) argumentFolders(cmd command) []string {
	dirs := []string{cmd.dir}
	for _, arg := range cmd.argv[1:min(len(cmd.argv), maxWords)] {
		for _, word := range fileWords(arg) {
			if word == "" || len(dirs) > maxArgumentFolders || strings.ContainsRune(word, 0) {
				continue
			}
			dir := word
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(cmd.dir, dir)
			}
			if st, err := os.Stat(dir); err == nil && st.IsDir() && c.inside(dir) && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// loadingVariables are variables that name files which common programs load as code.
var loadingVariables = []string{"NODE_OPTIONS", "PYTHONSTARTUP", "PYTHONPATH", "BASH_ENV", "ENV", "LD_PRELOAD",
	"DYLD_INSERT_LIBRARIES",
	"RUBYOPT", "PERL5OPT", "JAVA_TOOL_OPTIONS", "LUA_INIT"}

// isPathName reports whether a program is named by a path, so that PATH is not searched.
func isPathName(name string) bool {
	return strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator)
}

// program returns the file of the program that a command starts, or "" if there is none.
func (c *Config) program(cmd command) string {
	name := cmd.argv[0]
	if isPathName(name) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(cmd.dir, name)
		}
		if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
			return ""
		}
		return name
	}
	dirs := cmd.path
	if dirs == "" {
		dirs = c.processPath()
	}
	for _, dir := range filepath.SplitList(dirs) {
		if !filepath.IsAbs(dir) {
			continue // Go starts no program from a relative folder of PATH
		}
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

func (c *Config) processPath() string {
	lookup := os.LookupEnv
	if c.vars != nil && c.vars.Lookup != nil {
		lookup = c.vars.Lookup
	}
	path, _ := lookup("PATH")
	return path
}

// localFile returns the regular file that a word of a command names. Relative words begin in dir. It returns false
// unless the file is inside the project or the word is a relative path.
func (c *Config) localFile(word, dir string) (string, bool) {
	if word == "" || strings.ContainsRune(word, 0) {
		return "", false
	}
	path, relative := word, !filepath.IsAbs(word)
	if relative {
		path = filepath.Join(dir, word)
	}
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	return path, relative || c.inside(path)
}

// inside reports whether a path is in the project's folder, before or after its links are resolved.
func (c *Config) inside(path string) bool {
	is := func(path, dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel)
	}
	if is(path, c.Dir) {
		return true
	}
	real, err1 := filepath.EvalSymlinks(path)
	dir, err2 := filepath.EvalSymlinks(c.Dir)
	return err1 == nil && err2 == nil && is(real, dir)
}

// fileWords returns the parts of an argument that may name a file: the argument itself, the text after =, @ or file:,
// and the words into which a shell would split it.
func fileWords(arg string) []string {
	words := []string{arg}
	if _, value, ok := strings.Cut(arg, "="); ok {
		words = append(words, value)
	}
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' { // -r./file, -ffile
		words = append(words, arg[2:])
	}
	for _, prefix := range []string{"@", "file://", "file:"} {
		if rest, ok := strings.CutPrefix(arg, prefix); ok {
			words = append(words, rest)
		}
	}
	split := strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>(){}'\"`$=,:", r) })
	if len(split) > 1 {
		words = append(words, split...)
	}
	return words
}
