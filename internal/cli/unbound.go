package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/servers"
)

// When a person trusts a command, tenon records the command and the contents of the scripts that it names. Many
// commands load more files. tenon cannot notice changes in those, so the list of commands to agree to ends such a
// line with "not bound" and a few words about them.

// runners maps programs to descriptions of the files that they run without naming them as arguments.
var runners = map[string]string{
	"npm": "what npm runs", "pnpm": "what pnpm runs", "yarn": "what yarn runs", "make": "what make runs",
	"just": "what just runs", "task": "what task runs",
	"rake": "what rake runs", "gradle": "what gradle runs", "mvn": "what mvn runs",
	"cargo": "what cargo builds and runs", "go": "what go builds and runs",
	"dotnet": "what dotnet builds and runs", "poetry": "what poetry runs", "pdm": "what pdm runs",
	"hatch": "what hatch runs", "direnv": "what direnv loads",
	"nix": "what nix builds and runs", "docker": "the image and the files that docker uses",
	"podman":         "the image and the files that podman uses",
	"docker-compose": "the images and the files that docker uses", "ssh": "what runs on the other machine",
	"git": "what the configuration and the hooks of git run", "cmake": "what cmake runs", "ninja": "what ninja runs",
	"bazel": "what bazel builds and runs",
	"tox":   "what tox runs", "nox": "what nox runs", "pytest": "what pytest loads", "jest": "what jest loads",
	"vite": "what vite loads", "tsx": "what tsx loads",
	"ts-node": "what ts-node loads", "composer": "what composer runs", "bundle": "what bundle loads",
	"mix": "what mix builds and runs", "ant": "what ant runs",
	"terraform": "what terraform loads and runs", "ansible-playbook": "what ansible-playbook runs",
	"vagrant": "what vagrant runs", "kubectl": "what runs in the cluster",
}

// fetchers are programs that fetch a package and run it.
var fetchers = []string{"npx", "bunx", "pnpx", "uvx", "pipx"}

// unboundText describes the code that a command loads without the person's agreement, or "" if there is none.
func unboundText(argv, bound []string) string {
	if what := loadsMore(argv, bound); what != "" {
		return "; not bound: " + what
	}
	return ""
}

// loadsMore describes the code that a command loads and that is not a file in its arguments.
func loadsMore(argv, bound []string) string {
	if len(argv) == 0 {
		return ""
	}
	program, rest := programName(argv[0]), argv[1:]
	first := firstWord(rest)
	switch {
	case program == "env" && slices.ContainsFunc(rest, changesEnv):
		return "the program that env finds and what it loads"
	case program == "env" && first != "":
		for len(rest) > 0 && (strings.HasPrefix(rest[0], "-") || strings.Contains(rest[0], "=")) {
			rest = rest[1:]
		}
		return loadsMore(rest, bound)
	case slices.Contains(fetchers, program):
		return fetchedPackages(program, rest)
	case program == "uv" || program == "bun" || program == "deno":
		return "what " + program + " fetches and loads"
	case runners[program] != "":
		return runners[program]
	case slices.Contains(rest, "-c") && isShell(program):
		return "what the shell line calls"
	case isShell(program) && slices.ContainsFunc(rest, readsProfile):
		return "the profile that " + program + " loads"
	case slices.Contains(rest, "-m") && strings.HasPrefix(program, "python"):
		return "the module that python loads"
	case slices.ContainsFunc(rest, func(a string) bool { return a == "-e" || a == "--eval" || a == "-c" }) &&
		config.IsInterpreter(argv[0]):
		return "what the code in the command line loads"
	case config.IsInterpreter(argv[0]) && len(boundNames(rest, bound)) == 0 &&
		(first == "." || strings.HasSuffix(first, "/")):
		return "the folder " + first + ", which " + program + " loads"
	case program == "tenon" && first == "testserver" && len(bound) == 0: // the example of tenon init
		return ""
	case slices.Contains(selfContained, program) && len(bound) == 0:
		return ""
	}
	files := boundNames(rest, bound)
	switch {
	case len(files) == 1:
		return "what " + files[0] + " loads"
	case len(files) > 1:
		return "what " + strings.Join(files, ", ") + " load"
	}
	return "what " + filepath.Base(argv[0]) + " loads"
}

// selfContained are programs that load no code which their arguments, variables or working folder choose.
var selfContained = []string{"true", "false", "echo", "printf", "cat", "sleep", "touch", "pwd", "date", "printenv",
	"rm", "cp", "mv", "mkdir", "ls", "head", "tail", "wc", "id", "uname", "hostname"}

// boundNames returns the base names of the bound files that arguments name.
func boundNames(args, bound []string) (files []string) {
	for _, arg := range args {
		for _, file := range bound {
			base := filepath.Base(file)
			if strings.HasSuffix(arg, base) && !slices.Contains(files, base) {
				files = append(files, base)
			}
		}
	}
	return files
}

// fetchedPackages describes the packages that a fetcher downloads.
func fetchedPackages(program string, args []string) string {
	packages := servers.FetchedPackages(program, args)
	switch len(packages) {
	case 0:
		return "the package that " + program + " fetches"
	case 1:
		return "the package " + packages[0] + " that " + program + " fetches"
	}
	return "the packages " + strings.Join(packages, ", ") + " that " + program + " fetches"
}

// changesEnv reports whether an option of env changes the folder, or contains the whole command.
func changesEnv(arg string) bool {
	return strings.HasPrefix(arg, "-C") || strings.HasPrefix(arg, "--chdir") || strings.HasPrefix(arg, "-S") ||
		strings.HasPrefix(arg, "--split-string")
}

// readsProfile reports whether an option makes a shell a login shell or an interactive one.
func readsProfile(arg string) bool {
	return arg == "--login" || len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.ContainsAny(arg, "li")
}

// programName is the name of a program without folder, version and .exe.
func programName(path string) string {
	name := strings.ToLower(strings.TrimSuffix(filepath.Base(path), ".exe"))
	for _, script := range []string{".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, script)
	}
	return name
}

func isShell(program string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "fish", "pwsh", "powershell", "cmd"}, program)
}

// firstWord is the first argument that is not a flag.
func firstWord(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}
