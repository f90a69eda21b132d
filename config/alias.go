package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenonhq/tenon/servers"
)

// aliases returns the names of the layer's servers that lead to the same target (URL or command) as entry, a server
// of another layer. The list is sorted and does not contain the server's own name.
func (f *floor) aliases(name string, entry servers.Config) []string {
	var list []string
	for other, e := range f.c.Servers {
		e.Cwd = cmp.Or(e.Cwd, f.c.Dir)
		if other != name && sameTarget(e, entry) {
			list = append(list, other)
		}
	}
	slices.Sort(list)
	return list
}

// sameTarget reports whether two entries lead to the same server. If it cannot tell, it returns true, so that more
// rules apply rather than fewer.
func sameTarget(a, b servers.Config) bool {
	switch {
	case SameTarget(a, b):
		return true
	case a.URL != "" && b.URL != "":
		return address(a.URL) == address(b.URL)
	case a.Command == "" || b.Command == "":
		return false
	}
	if sharesFile(a, b) {
		return true
	}
	if !sameProgram(a.Command, b.Command) && !sameProgramFile(a, b) {
		return false
	}
	if !isRunner(a.Command) {
		return true
	}
	// A runner such as npx starts many servers: they differ in the package, script or image.
	return namesPackage(a, b) || namesPackage(b, a)
}

// namesPackage reports whether the arguments of a, a runner, name a package that b starts. The name may also be the
// value of an option.
func namesPackage(a, b servers.Config) bool {
	words := packages(a)
	started := packages(b)
	if len(started) > 1 && !slices.Contains(openRunners, programName(b.Command)) {
		started = started[:1]
	}
	return slices.ContainsFunc(started, func(w string) bool { return slices.Contains(words, w) })
}

// address returns a URL without the parts that do not change which server it reaches: the scheme, the default port,
// user and password, query, fragment, and the spelling of host and path.
func address(raw string) string {
	u, err := url.Parse(CanonicalURL(strings.TrimSpace(raw)))
	if err != nil || u.Host == "" {
		return raw
	}
	host := u.Hostname()
	if mayBeLocal(host) {
		host = "localhost"
	}
	port := u.Port()
	if port == "443" || port == "80" {
		port = "" // http and https of one host lead to the same server
	}
	return host + ":" + port + path.Clean("/"+u.Path)
}

// mayBeLocal reports whether a host may be this machine. The system's resolver accepts short and numeric forms of
// addresses that Go does not parse, such as 127.1 and 0x7f000001.
func mayBeLocal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().IsLoopback() || addr.IsUnspecified()
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || host == "localhost.localdomain" {
		return true
	}
	return host != "" && strings.Trim(host, "0123456789.xabcdef") == "" && strings.ContainsAny(host[:1], "0123456789")
}

// sameProgramFile reports whether two commands lead to the same file, also through links. If neither command has a
// folder, it returns false: both are looked up in PATH, which a project cannot change.
func sameProgramFile(a, b servers.Config) bool {
	if !strings.ContainsRune(a.Command+b.Command, filepath.Separator) {
		return false
	}
	return sameFile(programFile(a), programFile(b))
}

// programFile returns the file that an entry starts, or "" if it is not known. A relative path begins in the entry's
// working directory.
func programFile(e servers.Config) string {
	if !strings.ContainsRune(e.Command, filepath.Separator) {
		file, err := exec.LookPath(e.Command)
		if err != nil {
			return ""
		}
		return file
	}
	if filepath.IsAbs(e.Command) {
		return e.Command
	}
	return filepath.Join(e.Cwd, e.Command)
}

// sameProgram reports whether two commands start the same program. If one of them has no folder, it is looked up in
// PATH, so only the last parts of the paths are compared.
func sameProgram(a, b string) bool {
	if strings.ContainsRune(a, filepath.Separator) && strings.ContainsRune(b, filepath.Separator) {
		return filepath.Clean(a) == filepath.Clean(b) || isRunner(a) && programName(a) == programName(b)
	}
	return strings.EqualFold(filepath.Base(a), filepath.Base(b))
}

// openRunners are programs whose arguments name another program, at any position.
var openRunners = []string{"bash", "sh", "zsh", "dash", "fish", "env", "docker", "podman", "sudo", "nohup", "nice",
	"timeout", "ssh", "wsl", "cmd", "pwsh", "powershell"}

// isRunner reports whether a program starts another program, script or package that its arguments name.
func isRunner(command string) bool {
	name := programName(command)
	return runners[name] || slices.Contains(openRunners, name) || strings.HasPrefix(name, "python") ||
		slices.Contains([]string{"npm", "pnpm", "pnpx", "yarn", "bun", "uv", "go", "java", "ruby", "perl", "php",
			"dotnet", "cargo"}, name)
}

// packages returns the words of a runner's arguments that may name the package, script or image that it starts,
// without versions. It is the first word, unless that is the value of an option. Paths are cleaned.
func packages(entry servers.Config) []string {
	var list []string
	for _, arg := range entry.Args {
		for _, word := range strings.Fields(arg) { // sh -c takes a whole command line as one argument
			word = strings.ToLower(strings.Trim(word, `"';`))
			if strings.HasPrefix(word, "-") || len(word) < 3 || strings.Contains(word, "=") ||
				slices.Contains([]string{"run", "exec", "tool", "dlx"}, word) {
				continue
			}
			if i := strings.LastIndexAny(word, "@:"); i > strings.LastIndexByte(word, '/') && i > 0 {
				word = word[:i]
			}
			switch {
			case strings.HasPrefix(word, "/"):
				word = path.Clean(word)
			case path.Ext(word) == "":
				word = path.Base(word) // @scope/name is compared as name
			case strings.HasPrefix(word, "."):
				word = path.Clean(path.Join(strings.ToLower(entry.Cwd), word))
			}
			list = append(list, word)
		}
	}
	return list
}
