package servers

import (
	"slices"
	"strings"
	"unicode"
)

// The rule for names. A name is split into words. Strong words such as password name a secret anywhere in it, unless a
// later word says that the value is a property of the secret, such as its length or its file. Weak words such as key
// name one at the end, where a number or words such as PROD may follow. docs/guide/testing.md explains the rule.

// secretStrong are words that name a secret anywhere. They are also found at the end of compounds such as authtoken.
var secretStrong = []string{"password", "passwords", "passwd", "passphrase", "passcode", "secret", "secrets",
	"token", "passwort", "credential", "credentials", "apikey", "apikeys", "accesskey", "secretkey",
	"privatekey", "authkey", "bearer", "authorization"}

// secretWeak are words that name a secret at the end of a name.
var secretWeak = []string{"pass", "jwt", "sk", "pat"}

// keyKinds are words that make a following key a secret anywhere in a name.
var keyKinds = []string{"api", "access", "private", "secret", "signing", "encryption", "ssh", "auth",
	"license", "subscription", "deploy"}

// tokenKinds are words that make following tokens secrets: other tokens are counted.
var tokenKinds = []string{"api", "access", "auth", "bot", "refresh", "bearer", "session"}

// plainTokens are words before token for units and marks of a text.
var plainTokens = []string{"max", "maximum", "min", "minimum", "input", "output", "total", "prompt",
	"completion", "num", "stop", "pad", "eos", "bos", "unk", "cls", "sep", "mask", "special", "per"}

// propertyWords follow a secret's name where the value is a property of the secret or a place of it.
var propertyWords = []string{"path", "file", "filename", "dir", "directory", "folder", "location", "name",
	"names", "url", "uri", "endpoint", "host", "port", "type", "kind", "header", "prefix", "suffix",
	"format", "length", "len", "size", "count", "limit", "limits", "budget", "ttl", "age", "expiry",
	"expires", "expiration", "timeout", "lifetime", "interval", "max", "min", "per", "policy", "rotation",
	"store", "backend", "provider", "manager", "source", "mode", "method", "field", "column", "param",
	"parameter", "var", "variable", "env", "required", "enabled", "disabled", "enable", "disable",
	"algorithm", "alg", "encoding", "hint", "label", "prompt", "scope", "scopes", "audience", "issuer",
	"usage", "price", "symbol", "standard", "region", "namespace", "cache", "command", "helper", "regex",
	"pattern", "santa", "ingredient", "reset", "version", "bucket", "rate", "strength", "days", "hours",
	"minutes", "seconds"}

// qualifiers follow the name of a secret without changing its meaning.
var qualifiers = []string{"prod", "production", "live", "dev", "develop", "development", "stage", "staging",
	"stg", "test", "testing", "qa", "uat", "ci", "sandbox", "preview", "demo", "local", "default", "main",
	"primary", "secondary", "backup", "old", "new", "next", "current", "previous", "ro", "rw", "readonly",
	"admin", "root", "pem", "b64", "base64", "hex", "value", "text", "string", "raw", "id", "eu", "us",
	"uk"}

// solidKey are the words that end with key and name no secret.
var solidKey = []string{"primary", "foreign", "sort", "partition", "shard", "cache", "public", "range", "row",
	"group", "join", "map", "object", "lookup", "hot", "mon", "tur", "don", "whis", "joc", "hoc"}

// NamesSecret reports whether a variable, a header, a flag or a setting of this name usually has a secret value.
func NamesSecret(name string) bool {
	name = strings.TrimLeft(name, "-")
	if slices.Contains([]string{"PWD", "OLDPWD"}, name) { // folders of a shell
		return false
	}
	words := nameWords(name)
	for i := range words {
		after := words[i+1:]
		switch {
		case isStrong(words, i):
			if !slices.ContainsFunc(after, func(w string) bool { return slices.Contains(propertyWords, w) }) {
				return true
			}
		case isWeak(words, i):
			if !slices.ContainsFunc(after, func(w string) bool { return !isQualifier(w) }) {
				return true
			}
		}
	}
	return false
}

// isStrong reports whether a word names a secret, whatever words follow that are no property of it.
func isStrong(words []string, i int) bool {
	w, before := words[i], ""
	if i > 0 {
		before = words[i-1]
	}
	switch {
	case w == "key" || w == "keys":
		return slices.Contains(keyKinds, before) && !isKeyID(words, i)
	case w == "tokens":
		return slices.Contains(tokenKinds, before)
	case strings.HasSuffix(w, "token") && slices.Contains(plainTokens, before):
		return false
	}
	return slices.ContainsFunc(secretStrong, func(s string) bool { return strings.HasSuffix(w, s) })
}

// isWeak reports whether a word names a secret if only qualifiers follow it.
func isWeak(words []string, i int) bool {
	w := words[i]
	kind, isKey := strings.CutSuffix(w, "key")
	switch {
	case isKey && kind != "":
		return !slices.Contains(solidKey, kind)
	case isKey:
		return !isKeyID(words, i) && (i == 0 || !slices.Contains(solidKey, words[i-1]))
	case w == "auth", w == "sig": // longer names with these words are settings
		return len(words) == 1
	case strings.HasSuffix(w, "pwd"), strings.HasSuffix(w, "cookie"), strings.HasSuffix(w, "signature"):
		return true
	}
	return slices.Contains(secretWeak, w)
}

// isKeyID reports whether the name is the name of a key's id, which is no secret: AWS_ACCESS_KEY_ID.
func isKeyID(words []string, i int) bool { return i+1 < len(words) && words[i+1] == "id" }

// namesDSN reports whether a name is usually the name of a text that connects to a database.
func namesDSN(name string) bool {
	words := nameWords(name)
	for n := len(words); n > 0; n-- {
		if dsnName().MatchString(strings.Join(words[:n], "_")) {
			return true
		}
		if !isQualifier(words[n-1]) {
			break
		}
	}
	return false
}

// isQualifier reports whether a word after the name of a secret does not change its meaning: PROD, 2, v2, A.
func isQualifier(w string) bool {
	number := strings.TrimLeft(w, "v")
	return len(w) == 1 || strings.Trim(number, "0123456789") == "" || slices.Contains(qualifiers, w)
}

// nameWords splits a name into lower-case words, at characters that are neither letter nor digit, at changes of case,
// and before a number at the end of a word.
func nameWords(name string) (words []string) {
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for _, part := range strings.FieldsFunc(name, between) {
		from := 0
		runes := []rune(part)
		for i := 1; i < len(runes); i++ {
			was, r := runes[i-1], runes[i]
			lower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsUpper(r) && (unicode.IsLower(was) || unicode.IsUpper(was) && lower) {
				words, from = append(words, string(runes[from:i])), i
			}
		}
		words = append(words, string(runes[from:]))
	}
	for i, w := range words {
		w = strings.ToLower(w)
		if plain := strings.TrimRight(w, "0123456789"); plain != "" && !slices.Contains(qualifiers, w) && plain != "v" {
			w = plain // PASSWORD1
		}
		words[i] = w
	}
	return words
}
