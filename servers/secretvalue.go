package servers

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tenonhq/tenon/internal/lazyregexp"
)

// One judgement says which values of a configuration are secrets: by the name of a variable, a header, a flag or a
// setting, by the form of the value, and within the value of a URL or of another text that connects to a database.
// Everything that prints a configuration or registers its secrets uses it.

var (
	dsnName = lazyregexp.New(`(?i)(^|[_-]|[a-z])(dsn|connection[_-]?string|conn[_-]?str|(database|db)[_-]?ur[il])$`)
	// dsnPair matches a password in a text such as "host=db;password=x".
	dsnPair = lazyregexp.New(`(?i)(?:^|[;\s&?])(?:password|passwd|pwd|accountkey|sharedaccesskey|accesskey|` +
		`sharedaccesssignature)\s*=\s*("[^"]*"|'[^']*'|\{\{[^}]*\}\}|[^;\s&]+)`)
	// dsnLogin matches the password of a text such as "user:password@tcp(host)/db".
	dsnLogin = lazyregexp.New(`^[^:@/\s]*:([^@\s]+)@`)
	// jsonMember matches a member of a JSON object whose value is a text.
	jsonMember = lazyregexp.New(`"((?:[^"\\]|\\.)*)"\s*:\s*"((?:[^"\\]|\\.)*)"`)
	// formBody matches a body of application/x-www-form-urlencoded with several fields.
	formBody = lazyregexp.New(`^\s*[A-Za-z0-9_.~%+\[\]-]+=(?:\{\{[^}]*\}\}|[^&\s])*` +
		`(?:&[A-Za-z0-9_.~%+\[\]-]+=(?:\{\{[^}]*\}\}|[^&\s])*)+\s*$`)
)

// IsSecretValue reports whether a whole literal is a secret, by one of its names or by its form. Switches and short
// numbers are none.
func IsSecretValue(value string, names ...string) bool {
	if !isLiteral(value) || strings.TrimSpace(value) == "" {
		return false
	}
	if LooksLikeToken(value) || strings.Contains(value, "PRIVATE KEY-----") { // PEM
		return true
	}
	if _, err := strconv.ParseBool(value); err == nil || strings.Contains(value, "://") {
		return false // the password of a URL is a part of the value
	}
	return slices.ContainsFunc(names, NamesSecret)
}

// SecretParts returns the parts of a literal that are secrets: all of it (see [IsSecretValue]), without the scheme of
// an Authorization header; or the passwords in it.
func SecretParts(value string, names ...string) (parts []string) {
	if IsSecretValue(value, names...) {
		if scheme, rest, ok := strings.Cut(value, " "); ok && isScheme(scheme) {
			return []string{strings.TrimSpace(rest)}
		}
		return []string{value}
	}
	for _, at := range passwordsIn(value, names) {
		parts = append(parts, value[at[0]:at[1]])
	}
	for _, found := range writtenURL().FindAllString(value, -1) {
		parts = append(parts, addressSecrets(found)...)
	}
	return slices.DeleteFunc(parts, func(s string) bool { return !isLiteral(s) })
}

// isScheme reports whether a word is a scheme of the header Authorization.
func isScheme(word string) bool {
	return slices.Contains([]string{"bearer", "basic", "token"}, strings.ToLower(word))
}

// MaskValue returns a literal of a configuration with its secret parts masked.
func MaskValue(value string, names ...string) string {
	if IsSecretValue(value, names...) {
		return hiddenValue
	}
	found := passwordsIn(value, names)
	for _, at := range slices.Backward(found) {
		if isLiteral(value[at[0]:at[1]]) {
			value = value[:at[0]] + hiddenValue + value[at[1]:]
		}
	}
	return MaskAddresses(value)
}

// passwordsIn returns the places of the passwords in a text that is no URL: one that connects to a database, JSON, or a
// form of HTTP. They are in order and do not overlap.
func passwordsIn(value string, names []string) (places [][2]int) {
	all := slices.Concat(connectionPasswords(value, names), memberSecrets(value), formSecrets(value))
	slices.SortFunc(all, func(a, b [2]int) int { return cmp.Or(a[0]-b[0], b[1]-a[1]) })
	for _, at := range all {
		if len(places) == 0 || at[0] >= places[len(places)-1][1] {
			places = append(places, at)
		}
	}
	return places
}

// memberSecrets returns the places of the secret members of JSON objects in a text. The name key alone is none:
// {"key": "PROJ"} names a project.
func memberSecrets(value string) (places [][2]int) {
	if !strings.ContainsRune(value, '{') {
		return nil
	}
	for _, m := range jsonMember().FindAllStringSubmatchIndex(value, -1) {
		name := value[m[2]:m[3]]
		plain, err := strconv.Unquote(`"` + value[m[4]:m[5]] + `"`)
		if err != nil {
			plain = value[m[4]:m[5]]
		}
		if IsSecretValue(plain, name) && (!strings.EqualFold(name, "key") || LooksLikeToken(plain)) {
			places = append(places, [2]int{m[4], m[5]})
		}
	}
	return places
}

// formSecrets returns the places of the secret fields of a form, such as a=b&client_secret=c.
func formSecrets(value string) (places [][2]int) {
	if strings.Contains(value, "://") || !formBody().MatchString(value) {
		return nil
	}
	for _, p := range pairPlaces(value, 0) {
		places = append(places, [2]int{p.From, len(strings.TrimRight(value[:p.To], "\r\n\t "))})
	}
	return places
}

// connectionPasswords returns the places of the passwords in a text that connects to a database.
func connectionPasswords(value string, names []string) (places [][2]int) {
	for _, m := range dsnPair().FindAllStringSubmatchIndex(value, -1) {
		places = append(places, [2]int{m[2], m[3]})
	}
	if slices.ContainsFunc(names, namesDSN) && len(places) == 0 && !strings.Contains(value, "://") {
		if m := dsnLogin().FindStringSubmatchIndex(value); m != nil {
			places = append(places, [2]int{m[2], m[3]})
		}
	}
	return places
}

// addressSecrets returns the password of a URL, as it is written and decoded, and secret values of its query. A
// password that equals the user's name is no secret: masking it would mask the name everywhere.
func addressSecrets(address string) (parts []string) {
	u, err := url.Parse(strings.TrimRight(address, ":,;"))
	if err != nil {
		return nil
	}
	if password, ok := u.User.Password(); ok && password != u.User.Username() {
		_, written, _ := strings.Cut(u.User.String(), ":")
		parts = append(parts, password, written)
	}
	if user := u.User.Username(); isTokenLogin(user, u.User.String()) {
		parts = append(parts, user)
	}
	for _, pair := range strings.Split(u.RawQuery, "&") {
		name, value, ok := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(value); ok && err == nil && IsSecretValue(plain, name) {
			parts = append(parts, plain, value)
		}
	}
	return parts
}

// isTokenLogin reports whether the login of a URL is a token in place of a name and a password.
func isTokenLogin(user, login string) bool {
	if strings.Contains(strings.TrimSuffix(login, ":"), ":") {
		return false
	}
	return LooksLikeToken(user) || len(user) >= 24 && strings.ContainsAny(user, "0123456789") &&
		strings.Trim(strings.ToLower(user), "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// SecretArgs returns the literal secrets in the arguments of a command, as [MaskArgs] finds them.
func SecretArgs(args []string) (parts []string) {
	for i := range args {
		name, value, found := argSecret(args, i)
		if found {
			parts = append(parts, SecretParts(value, name)...)
		} else {
			parts = append(parts, SecretParts(args[i])...)
		}
	}
	return parts
}

// argSecret returns the value of an argument that may be secret, and the name that says so.
func argSecret(args []string, i int) (name, value string, found bool) {
	arg := args[i]
	flag, isFlag := strings.CutPrefix(arg, "-")
	name, value, assigned := strings.Cut(flag, "=")
	name = strings.TrimLeft(name, "-")
	switch {
	case assigned && (isFlag || isName(name)):
		return name, value, true
	case !isFlag && i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "=") &&
		(NamesSecret(args[i-1]) || len(passwordsIn(arg, args[i-1:i])) > 0):
		return args[i-1], arg, true
	}
	if name, value, ok := strings.Cut(arg, ":"); ok && isName(name) && !strings.HasPrefix(value, "//") {
		return name, strings.TrimSpace(value), true
	}
	return "", "", false
}

// MaskStart returns the arguments of a command as [MaskArgs] does, for a person who decides whether it may start. A
// value that could name a program or a file, or that a shell would run, stays visible unless it has the form of a
// token.
func MaskStart(args []string) []string {
	out := MaskArgs(args)
	for i, arg := range args {
		if out[i] == arg {
			continue
		}
		name, value, found := argSecret(args, i)
		if !found {
			value = arg
		}
		if IsSecretValue(value, name) && !LooksLikeToken(value) && (mayRun(value) || strings.ContainsAny(value, "/ ")) {
			out[i] = arg
		}
	}
	return out
}
