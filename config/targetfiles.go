package config

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/servers"
)

// targetFile is a file that a command may start.
type targetFile struct {
	info os.FileInfo
	main bool // the program itself: the first file in the arguments, or code
}

// sharesFile reports whether two commands start the same file. It compares the files themselves, so different
// spellings, links, or options between program and script make no difference. A settings or data file that both
// commands read does not count.
func sharesFile(a, b servers.Config) bool {
	files := targetFiles(a)
	if len(files) == 0 {
		return false
	}
	for _, y := range targetFiles(b) {
		if slices.ContainsFunc(files, func(x targetFile) bool {
			return (x.main || y.main) && os.SameFile(x.info, y.info)
		}) {
			return true
		}
	}
	return false
}

// targetFiles returns the files that an entry may start. If the program starts another one that its arguments name,
// these are the existing files among the arguments; otherwise it is the program. Relative paths begin in the working
// directory.
func targetFiles(e servers.Config) []targetFile {
	if e.Command == "" {
		return nil
	}
	if !startsArguments(e.Command) {
		info, err := os.Stat(programFile(e))
		if err != nil {
			return nil
		}
		return []targetFile{{info, true}}
	}
	var list []targetFile
	for _, arg := range e.Args {
		words := []string{arg}
		if strings.ContainsAny(arg, " \t\n") {
			words = append(words, strings.Fields(arg)...) // sh -c takes a whole command line as one argument
		}
		for _, word := range words {
			word = strings.Trim(word, `"';`)
			if _, value, ok := strings.Cut(word, "="); ok {
				word = value
			}
			file := word
			if !filepath.IsAbs(file) {
				file = filepath.Join(e.Cwd, file)
			}
			info, err := os.Stat(file)
			if word == "" || err != nil || !info.Mode().IsRegular() {
				continue
			}
			list = append(list, targetFile{info, len(list) == 0 || isCode(file)})
		}
	}
	return list
}

// startsArguments reports whether a program starts another program or script that its arguments name.
func startsArguments(command string) bool {
	return isRunner(command) || slices.Contains(wrappers, baseProgram(command)) ||
		slices.Contains(launchers, baseProgram(command)) || IsInterpreter(command)
}

// isCode reports whether a file contains code, judged by its real name, its mode and its first bytes.
func isCode(file string) bool {
	real, err := filepath.EvalSymlinks(file)
	return err == nil && looksLikeCode(real) && !slices.Contains(settingsEndings, strings.ToLower(path.Ext(real)))
}

// settingsEndings are the extensions of settings files, which several servers may share.
var settingsEndings = []string{".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env", ".rc",
	".properties", ".xml"}
