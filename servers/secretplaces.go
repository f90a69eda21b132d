package servers

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// SecretPlace is the place of a secret in a text.
type SecretPlace struct {
	From, To int // bytes
	// Name is the text's own name of the secret: a parameter of a URL, password or login. It is empty if the text
	// has no name for it.
	Name string
}

// SecretPlaces returns the places of [SecretParts], in their order and without overlaps, and logins that are tokens:
// https://ghp_…@github.com has one. It is for programs that replace them by references.
func SecretPlaces(value string, names ...string) []SecretPlace {
	if IsSecretValue(value, names...) {
		from := 0
		if scheme, rest, ok := strings.Cut(value, " "); ok && isScheme(scheme) {
			from = len(value) - len(strings.TrimLeft(rest, " "))
		}
		return []SecretPlace{{From: from, To: len(value)}}
	}
	var all []SecretPlace
	for _, at := range writtenURL().FindAllStringIndex(value, -1) {
		all = append(all, addressPlaces(strings.TrimRight(value[:at[1]], ":,;"), at[0])...)
	}
	for _, at := range passwordsIn(value, names) {
		all = append(all, SecretPlace{at[0], at[1], "password"})
	}
	slices.SortStableFunc(all, func(a, b SecretPlace) int { return cmp.Compare(a.From, b.From) })
	var places []SecretPlace
	for _, p := range all {
		if isLiteral(value[p.From:p.To]) && (len(places) == 0 || p.From >= places[len(places)-1].To) {
			places = append(places, p)
		}
	}
	return places
}

// ArgPlaces returns the places of the secrets in one argument of a command, as [SecretArgs] finds them. A secret after
// a flag has the flag's name.
func ArgPlaces(args []string, i int) []SecretPlace {
	name, value, found := argSecret(args, i)
	if !found {
		return SecretPlaces(args[i])
	}
	places := SecretPlaces(value, name)
	for j := range places {
		p := &places[j]
		p.From, p.To = p.From+len(args[i])-len(value), p.To+len(args[i])-len(value)
		p.Name = cmp.Or(p.Name, strings.TrimLeft(name, "-"))
	}
	return places
}

// addressPlaces returns the places of secrets in the URL that begins at an index of a text and ends with it.
func addressPlaces(text string, at int) (places []SecretPlace) {
	scheme, rest, _ := strings.Cut(text[at:], "://")
	start := at + len(scheme) + len("://")
	rest, fragment, _ := strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	if i := loginEnd(scheme, rest); i >= 0 {
		user, password, _ := strings.Cut(rest[:i], ":")
		switch {
		case password != "" && password != user:
			places = append(places, SecretPlace{start + len(user) + 1, start + i, "password"})
		case isTokenLogin(user, rest[:i]):
			places = append(places, SecretPlace{start, start + len(user), "login"})
		}
	}
	places = append(places, pairPlaces(query, start+len(rest)+1)...)
	return append(places, pairPlaces(fragment, len(text)-len(fragment))...)
}

// pairPlaces returns the places of secrets in a query or a fragment that begins at an index of a text.
func pairPlaces(query string, at int) (places []SecretPlace) {
	for pair := range strings.SplitSeq(query, "&") {
		name, value, ok := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(value); ok && err == nil && IsSecretValue(plain, name) {
			places = append(places, SecretPlace{at + len(name) + 1, at + len(pair), name})
		}
		at += len(pair) + 1
	}
	return places
}
