package config

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Arguments of a command name both code and data. A person approves the contents of code files. Data, such as a
// database or a log, changes with each use, and repeated questions would teach people to approve changes without
// looking. A file is treated as code if the program runs it, or if it looks like code or settings.

// interpreters are programs that run a file named in their arguments.
var interpreters = []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "python", "pypy", "node", "nodejs", "deno",
	"bun", "ruby", "perl", "php", "lua", "java",
	"rscript", "tsx", "ts-node", "uv", "pwsh", "powershell", "osascript", "tclsh", "swift", "dotnet", "bunx", "npx",
	"pnpx", "uvx", "pipx",
	"awk", "gawk", "mawk", "expect", "erl", "escript", "elixir", "julia", "r", "octave", "scala", "kotlin", "groovy",
	"jshell", "racket", "guile", "sbcl", "clisp",
	"runghc", "runhaskell", "ocaml", "mono", "wine", "wasmtime", "wasmer", "graalpy", "jython", "jruby", "fennel",
	"nim", "v", "zx"}

// wrappers start the command that follows their flags.
var wrappers = []string{"env", "nohup", "nice", "time", "timeout", "sudo", "doas", "setsid", "stdbuf", "exec",
	"command"}

// launchers are programs whose arguments may contain commands, or files of commands, at any position.
var launchers = []string{"xargs", "busybox", "make", "just", "task", "rake", "chroot", "unshare", "bwrap", "firejail",
	"direnv", "find", "parallel"}

// IsInterpreter reports whether a program runs a file named in its arguments. It looks at the program's name and, if
// the program is a link, at the name of the target.
func IsInterpreter(program string) bool {
	if slices.Contains(interpreters, baseProgram(program)) {
		return true
	}
	real, err := filepath.EvalSymlinks(program)
	return err == nil && slices.Contains(interpreters, baseProgram(real))
}

// baseProgram returns the name of a program without folder, version and extension: python for /usr/bin/python3.12.
func baseProgram(program string) string {
	name := strings.ToLower(filepath.Base(program))
	for _, ext := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ext)
	}
	return strings.TrimRight(name, "0123456789.")
}

// fetchers are programs that fetch a package and run it. The arguments after the package are for the package.
var fetchers = []string{"npx", "bunx", "pnpx", "uvx", "pipx"}

// plainFlags are flags of interpreters that take no value, so that the next word is the script.
var plainFlags = []string{"-u", "-x", "-e", "-eu", "-ex", "-ux", "-eux", "-B", "-O", "-OO", "-q", "-w", "-n", "-y"}

// codePlaces reports for each argument whether its position makes it code. For an interpreter, these are the
// arguments up to the script; for a launcher or a shell command line, all arguments; for other programs, none. The
// word after an option may be the option's value, so it does not end the search for the script. isFile reports
// whether an argument names a file.
func codePlaces(argv []string, isFile func(string) bool) []bool {
	places := make([]bool, len(argv))
	whole, script := false, false // script: the next file is code
	for i, arg := range argv {
		places[i] = whole || script
		name := baseProgram(arg)
		known := slices.Contains(interpreters, name) || slices.Contains(wrappers, name) || i == 0 && IsInterpreter(arg)
		switch {
		case i > 0 && strings.HasPrefix(arg, "-"):
			whole = whole || arg == "-c" && script
		case slices.Contains(launchers, name):
			whole = true
		case slices.Contains(fetchers, name):
			script = false
		case known:
			script = true
		case i > 0 && argv[i-1] == "-m" || i > 0 && script && isFile(arg) && !isOption(argv[i-1]):
			script = false // the rest are arguments of the script
		}
	}
	return places
}

// isOption reports whether a word may be an option that takes the next word as its value.
func isOption(arg string) bool {
	return (strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "+")) && !slices.Contains(plainFlags, arg)
}

// loadsFlag reports whether a flag names a file that a program loads code or settings from.
func loadsFlag(arg string) bool {
	if !strings.HasPrefix(arg, "-") {
		return false
	}
	// a value without a space, such as -r./file
	if len(arg) > 2 && (strings.HasPrefix(arg, "-r") || strings.HasPrefix(arg, "-c")) &&
		strings.ContainsAny(arg[2:3], "./") {
		return true
	}
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimLeft(arg, "-")), "=")
	if name == "r" || name == "c" || name == "f" || name == "cp" || name == "classpath" || name == "jar" {
		return true
	}
	for _, word := range []string{"config", "settings", "require", "import", "load", "script", "plugin", "preload",
		"env-file", "env_file", "rcfile", "init"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// codeEndings are the extensions of files that contain code or settings.
var codeEndings = []string{".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".py", ".pyw", ".pyc",
	".pyz", ".rb", ".pl", ".pm", ".php", ".lua", ".sh", ".bash",
	".zsh", ".fish", ".ksh", ".ps1", ".psm1", ".bat", ".cmd", ".com", ".exe", ".jar", ".war", ".class", ".wasm",
	".so", ".dylib", ".dll", ".node", ".go", ".rs", ".swift",
	".kts", ".groovy", ".gradle", ".r", ".jl", ".scala", ".clj", ".ex", ".exs", ".tcl", ".awk", ".mk", ".yaml",
	".yml", ".toml", ".ini", ".cfg", ".conf", ".env", ".rc",
	".properties", ".xml", ".service", ".nix"}

// dataEndings are the extensions of files that programs read and change as data.
var dataEndings = []string{".db", ".sqlite", ".sqlite3", ".db3", ".duckdb", ".log", ".csv", ".tsv", ".json", ".jsonl",
	".ndjson", ".txt", ".md", ".arrow", ".parquet", ".feather", ".tooltable", ".lock", ".pid", ".sock", ".png",
	".jpg", ".jpeg", ".gif", ".webp", ".svg", ".pdf", ".wav", ".mp3", ".mp4", ".zip", ".gz", ".xz", ".zst", ".tar",
	".html", ".htm", ".pem", ".crt", ".key", ".out", ".tmp", ".bak", ".cache", ".dat", ".bin"}

// isData reports whether a file is a data file, judged by its name.
func isData(path string) bool {
	return slices.Contains(dataEndings, strings.ToLower(filepath.Ext(path)))
}

// looksLikeCode reports whether a file contains code or settings, judged by its name, its mode and its first bytes.
func looksLikeCode(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	ext := filepath.Ext(name)
	switch {
	case slices.Contains(codeEndings, ext):
		return true
	case ext == ".json":
		for _, word := range []string{"config", "settings", "package", "manifest", "deno", "tsconfig", "mcp", "tasks",
			"launch"} {
			if strings.Contains(name, word) {
				return true
			}
		}
	case ext == "" && slices.Contains([]string{"makefile", "dockerfile", "rakefile", "justfile", "gemfile",
		"procfile"}, name):
		return true
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm()&0o111 != 0 {
		return err == nil
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // it was only read
	head := make([]byte, 4)
	n, _ := io.ReadFull(f, head) // a shorter file is compared as it is
	head = head[:n]
	for _, magic := range []string{"#!", "\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\x00asm"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}
