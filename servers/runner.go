package servers

import (
	"path"
	"slices"
	"strings"
)

// Package runners fetch a program before they start it, which takes as long as the network does. So servers behind a
// package runner have more time to connect, and a person sees which package is fetched.

// fetches returns the package runner that a command starts, and the package that it may have to fetch. pkg is "" if
// it is not known; program is "" if the command is not a package runner. fetches looks through wrappers such as env
// and shell lines.
func (c Config) fetches() (program, pkg string) {
	if c.Command == "" {
		return "", ""
	}
	argv := unwrap(append([]string{c.Command}, c.Args...))
	if len(argv) == 0 {
		return "", ""
	}
	program, rest := programOf(argv[0]), argv[1:]
	switch program {
	case "npx", "bunx", "pnpx", "uvx", "dnx":
	case "npm":
		rest = after(rest, "exec", "x")
	case "pnpm", "yarn":
		rest = after(rest, "dlx", "exec")
	case "bun":
		rest = after(rest, "x")
	case "uv":
		if sub := after(rest, "tool"); sub != nil {
			rest = after(sub, "run")
			break
		}
		rest = after(rest, "run")
	case "pipx", "docker", "podman", "nerdctl", "deno", "go", "cargo", "dotnet", "nix", "jbang":
		rest = after(rest, "run")
	default:
		return "", ""
	}
	switch {
	case rest == nil:
		return "", ""
	case program == "docker" || program == "podman" || program == "nerdctl":
		return program, image(rest)
	}
	return program, strings.Join(FetchedPackages(program, rest), ", ")
}

// install tells a person how to obtain the command, which is not on this machine.
func (c Config) install() string {
	from := ""
	switch program := programOf(c.Command); program {
	case "npx", "npm", "node":
		from = "Node.js (https://nodejs.org)"
	case "uvx", "uv":
		from = "uv (https://docs.astral.sh/uv)"
	case "python", "python3", "pipx", "docker", "podman", "deno", "go", "cargo", "dotnet":
		from = program
	case "bun", "bunx":
		from = "Bun (https://bun.sh)"
	default:
		return "install it"
	}
	return "install " + from
}

// after returns the arguments that follow the first of the given words, or nil if none of the words is in the
// arguments before a "--".
func after(args []string, words ...string) []string {
	for i, a := range args {
		if a == "--" {
			break
		}
		if slices.Contains(words, a) {
			return args[i+1:]
		}
	}
	return nil
}

// maxWrappers bounds how many wrappers unwrap looks through.
const maxWrappers = 4

// unwrap removes programs that only start another one, and splits the line of a shell.
func unwrap(argv []string) []string {
	for range maxWrappers {
		if len(argv) == 0 {
			return nil
		}
		rest := argv[1:]
		switch programOf(argv[0]) {
		case "env":
			for len(rest) > 0 && (strings.HasPrefix(rest[0], "-") || strings.Contains(rest[0], "=")) {
				rest = rest[1:]
			}
		case "sudo", "nice", "nohup", "exec", "wsl", "command":
			for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
				rest = rest[1:]
			}
		case "cmd":
			for len(rest) > 0 && strings.HasPrefix(rest[0], "/") {
				rest = rest[1:]
			}
		case "sh", "bash", "dash", "zsh", "ksh", "fish", "pwsh", "powershell":
			i := slices.IndexFunc(rest, isLineFlag)
			if i < 0 || i+1 == len(rest) {
				return argv
			}
			rest = lastCommand(strings.Join(rest[i+1:], " "))
		default:
			return argv
		}
		argv = rest
	}
	return argv
}

// isLineFlag reports whether an option of a shell is followed by a command line: -c, -lc, -Command.
func isLineFlag(arg string) bool {
	return strings.EqualFold(arg, "-command") ||
		strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, "c")
}

// lastCommand returns the words of the last command of a shell line, such as "cd x && npx y". Quotes are only removed,
// because the words are shown and not run.
func lastCommand(line string) []string {
	words := strings.Fields(strings.NewReplacer("&&", " && ", ";", " ; ", `"`, "", "'", "").Replace(line))
	for i := len(words) - 2; i >= 0; i-- {
		if words[i] == "&&" || words[i] == ";" {
			return words[i+1:]
		}
	}
	return words
}

// programOf returns the name of a program without folder and extension.
func programOf(command string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/")))
	for _, end := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// switches are the flags of docker run that take no value. All other flags take the next word as their value, unless
// they contain a "=".
var switches = []string{"-d", "--detach", "-i", "--interactive", "-t", "--tty", "--init", "--rm", "--privileged",
	"--read-only", "-P", "--publish-all", "-q", "--quiet", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy",
	"--disable-content-trust", "--help"}

// image returns the image in the arguments of docker run, or "".
func image(args []string) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !strings.HasPrefix(a, "-"):
			return a
		case slices.Contains(switches, a) || strings.Contains(a, "="):
		case !strings.HasPrefix(a, "--") && strings.Trim(a[1:], "ditPq") == "": // -it
		case !strings.HasPrefix(a, "--") && len(a) > 2 && strings.Trim(a[1:2], "ditPq") != "": // -eKEY
		default:
			i++
		}
	}
	return ""
}

// packageFlags are flags of package runners whose value is a package. If the map's value is true, that package
// contains the program, so the first word is not a package.
var packageFlags = map[string]bool{"--package": true, "--from": true, "--spec": true, "--with": false,
	"--with-editable": false}

// valueFlags are other flags of package runners that take the next word as their value.
var valueFlags = []string{"-c", "--call", "--python", "--index-url", "--index", "--default-index",
	"--extra-index-url", "--registry", "--prefix", "--cache", "--pip-args", "--with-requirements"}

// FetchedPackages returns the packages in the arguments of a package runner such as npx, uvx or pipx, in order.
func FetchedPackages(program string, args []string) (packages []string) {
	named := false
	for i := 0; i < len(args); i++ {
		flag, value, inline := strings.Cut(args[i], "=")
		if flag == "-p" && program == "npx" {
			flag = "--package"
		}
		hasProgram, isPackage := packageFlags[flag]
		if next := i + 1; !inline && next < len(args) && (isPackage || slices.Contains(valueFlags, flag) ||
			flag == "-p") {
			value, i = args[next], next
		}
		switch {
		case isPackage:
			packages = append(packages, value)
			named = named || hasProgram
		case strings.HasPrefix(args[i], "-") || i > 0 && value == args[i] && strings.HasPrefix(flag, "-"):
		case program == "pipx" && args[i] == "run":
		default: // the rest are arguments of the program
			if !named {
				packages = append(packages, args[i])
			}
			i = len(args)
		}
	}
	return packages
}
