package cli

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/internal/lazyregexp"
	"github.com/tenonhq/tenon/servers"
	"github.com/tenonhq/tenon/trust"
)

// Before a person trusts a project, tenon lists what the project can do. The list shows values so that the person sees
// what really runs, but no secret is readable on the terminal:
//
//   - A URL is shown as it is written, without a literal login and without literal values that are secrets by their
//     name or form. If variables or a user name could hide the host, the real host follows.
//   - A command, its folder and its environment are shown with the values of the project's own .env, since the
//     project wrote these values, and they decide what runs. Variables of the person's environment stay ${NAME}, except
//     in the place of the program. The value of a variable with the name of a secret, such as API_KEY, stays ${NAME}.
//   - Elsewhere, values that are secret by their name or their form stay ${NAME}.

// secretName matches names of variables, flags and settings that usually hold secrets.
var secretName = lazyregexp.New(
	`(?i)key|token|secret|passw|passphrase|pwd|auth|cred|bearer|cookie|session|private|signature`)

// hides reports whether a value is a secret, by its name or its form.
func hides(r config.Reference) bool {
	return config.LooksLikeToken(r.Value) || r.Value != "" && secretName().MatchString(r.Name)
}

// text returns the value at a path. Values of the project's .env are shown, unless they are secrets. actual is for a
// value that no file contains.
func (b *itemBuilder) text(path, actual string) string {
	return b.rewritten(path, actual, func(r config.Reference) bool { return r.Project && !hides(r) })
}

// full returns the value at a path with all values of the project's .env.
func (b *itemBuilder) full(path, actual string) string {
	return b.rewritten(path, actual, func(r config.Reference) bool { return r.Project })
}

func (b *itemBuilder) rewritten(path, actual string, clear func(config.Reference) bool) string {
	if len(b.cfg.References(path)) == 0 {
		return actual
	}
	text, _ := b.cfg.Rewrite(path, func(r config.Reference) string {
		if clear(r) {
			return r.Value
		}
		return "${" + r.Name + "}"
	})
	return text
}

// program returns the program of a command. It is what starts, so only a token of the person stays hidden.
func (b *itemBuilder) program(path, actual string) string {
	return b.rewritten(path, actual, func(r config.Reference) bool {
		return r.Project || !config.LooksLikeToken(r.Value)
	})
}

// command returns a command line. at is the path of the program and args the path of the list of its arguments, which
// may be the same list.
func (b *itemBuilder) command(at, args string, first int, argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	out := []string{b.program(at, argv[0])}
	masked := servers.MaskStart(argv[1:])
	for i, arg := range argv[1:] {
		path := args + "[" + strconv.Itoa(first+i) + "]"
		if len(b.cfg.References(path)) > 0 {
			masked[i] = b.full(path, arg)
		}
	}
	return append(out, masked...)
}

// startLine returns a command line, and the code that it loads without a person's consent.
func (b *itemBuilder) startLine(at, args string, first int, argv []string, place string) (line, unbound string) {
	bound := b.cfg.CommandFiles(place)
	unbound = unboundText(argv, bound)
	shown := b.command(at, args, first, argv)
	for i := range shown {
		if shown[i] != argv[i] {
			unbound = strings.ReplaceAll(unbound, argv[i], shown[i])
		}
	}
	return shellLine(shown), unbound
}

// address returns a URL as it is written, and the real host if the written form could hide it.
func (b *itemBuilder) address(path, actual string) string {
	written := b.cfg.Written(path)
	if len(b.cfg.References(path)) == 0 {
		written = actual
	}
	if !hidesHost(written) {
		return written
	}
	u, err := url.Parse(actual)
	if err != nil || u.Host == "" {
		return written
	}
	host := u.Host
	for _, r := range b.cfg.References(path) {
		// the value may be the end of the host
		named := r.Project && strings.ContainsAny(r.Value, ".:") && !config.LooksLikeToken(r.Value)
		if hides(r) && !named {
			host = strings.ReplaceAll(strings.ReplaceAll(host, r.Value, "${"+r.Name+"}"), strings.ToLower(r.Value),
				"${"+r.Name+"}")
		}
	}
	return written + " (host: " + foreignLetters(host) + ")"
}

// hidesHost reports whether the written form of a URL does not clearly show its host.
func hidesHost(written string) bool {
	scheme, rest, ok := strings.Cut(written, "://")
	if !ok || strings.Contains(scheme, "$") {
		return true
	}
	authority, variable := rest, strings.Index(rest, "${")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
		variable = min(variable, end)
		if variable == end {
			variable = -1
		}
	}
	return variable >= 0 || strings.ContainsAny(authority, "@\\") || strings.ContainsFunc(authority, isForeignLetter)
}

// isForeignLetter reports whether a character of a host is not ASCII. Many look like ASCII letters.
func isForeignLetter(r rune) bool { return r > unicode.MaxASCII }

// foreignLetters escapes such characters.
func foreignLetters(host string) string {
	return escape(host, func(r rune) bool { return !isForeignLetter(r) })
}

// path returns the path of a file or a folder.
func (b *itemBuilder) path(at, actual string) string {
	if len(b.cfg.References(at)) == 0 {
		return b.place(actual)
	}
	return b.text(at, actual)
}

// folder is path for the working folder of a program.
func (b *itemBuilder) folder(at, actual string) string {
	if len(b.cfg.References(at)) == 0 {
		return b.place(actual)
	}
	return b.full(at, actual)
}

// masked replaces secrets that are still in the text of items, such as in the path of a file. It does not change the
// text of a command, which shows what runs.
func (b *itemBuilder) masked() {
	var secrets []config.Reference
	for _, r := range b.cfg.AllReferences() {
		plain := r.Project && strings.ContainsAny(r.Value, ".:/ ") && !config.LooksLikeToken(r.Value)
		if hides(r) && !plain && len(r.Value) >= 4 {
			secrets = append(secrets, r)
		}
	}
	slices.SortFunc(secrets, func(x, y config.Reference) int { return len(y.Value) - len(x.Value) })
	for i, item := range b.list {
		if item.Kind == itemCommand {
			continue
		}
		item.Text = servers.MaskAddresses(item.Text)
		for _, r := range secrets {
			item.Text = strings.ReplaceAll(item.Text, r.Value, "${"+r.Name+"}")
		}
		b.list[i] = trust.Item{Kind: item.Kind, Path: item.Path, Text: item.Text}
	}
}

// maskedRecord returns a record as this version writes it. Older ones masked no logins in URLs.
func maskedRecord(r *trust.Record) *trust.Record {
	out := *r
	out.Items = slices.Clone(r.Items)
	for i, item := range out.Items {
		if item.Kind != itemCommand {
			out.Items[i].Text = servers.MaskAddresses(item.Text)
		}
	}
	return &out
}
