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
	main bool // what starts is in it: the first file of the arguments, or code
}

// sharesFile reports whether two commands start one file. Files are compared as such, so that no spelling, link or
// option between program and script tells them apart. A file of settings or data that both read is no such file.
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

// targetFiles returns the files that an entry may start: the existing ones among the arguments of a program that starts
// what its arguments name, else the program. Relative paths are seen from the working directory.
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
			words = append(words, strings.Fields(arg)...) // sh -c takes a whole command line
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

// startsArguments reports whether a program starts what its arguments name.
func startsArguments(command string) bool {
	return isRunner(command) || slices.Contains(wrappers, baseProgram(command)) ||
		slices.Contains(launchers, baseProgram(command)) || IsInterpreter(command)
}

// isCode reports whether a file holds code, by the name behind a link, its mode and its first bytes.
func isCode(file string) bool {
	real, err := filepath.EvalSymlinks(file)
	return err == nil && looksLikeCode(real) && !slices.Contains(settingsEndings, strings.ToLower(path.Ext(real)))
}

// settingsEndings are the ends of the names of files that hold settings, which several servers may share.
var settingsEndings = []string{".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env", ".rc",
	".properties", ".xml"}
