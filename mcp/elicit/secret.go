package elicit

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
)

// A server must not ask for a password by a form (MCP 2025-11-25, elicitation), but some will. A person may mistake
// such a form for a question of tenon itself. So every form that seems to ask for a secret is marked, and surfaces
// name the server that receives the answer. The word lists are a heuristic that prefers false positives.

// secretWords contains words of which each denotes a secret.
var secretWords = []string{"password", "passwords", "passwd", "pwd", "passphrase", "passcode", "passwort", "kennwort",
	"secret", "secrets", "token", "credential", "credentials", "pin", "pins", "otp", "totp", "cvv", "cvc", "mnemonic",
	"apikey", "apikeys", "accesskey", "privatekey", "secretkey", "sshkey", "authcode", "logincode", "seedphrase",
	"authorization", "bearer", "ssn"}

// secretPhrases are sequences of words that denote a secret.
var secretPhrases = [][]string{{"api", "key"}, {"access", "key"}, {"private", "key"}, {"secret", "key"}, {"ssh", "key"},
	{"signing", "key"}, {"encryption", "key"}, {"license", "key"}, {"recovery", "key"}, {"recovery", "phrase"},
	{"seed", "phrase"}, {"recovery", "words"}, {"security", "code"}, {"verification", "code"},
	{"confirmation", "code"}, {"one", "time", "code"}, {"access", "code"}, {"auth", "code"},
	{"authentication", "code"}, {"authenticator", "code"}, {"login", "code"}, {"sms", "code"}, {"backup", "code"},
	{"recovery", "code"}, {"2fa"}, {"mfa"}, {"card", "number"}, {"security", "answer"},
	{"mother", "s", "maiden", "name"}, {"pass", "word"}, {"pass", "phrase"}, {"log", "in", "details"},
	{"digit", "code"}, {"session", "cookie"}, {"login", "cookie"}, {"auth", "cookie"},
	{"code", "from", "your", "phone"}, {"social", "security"}}

// ordinaryBefore maps an ambiguous word to words that can precede it. After one of these, the word does not denote a
// secret.
var ordinaryBefore = map[string][]string{
	"key": {"primary", "foreign", "sort", "partition", "object", "map", "cache", "routing", "public", "dictionary",
		"json", "answer", "arrow", "musical", "which"},
	"code": {"zip", "post", "postal", "country", "area", "dial", "dialling", "language", "currency", "colour", "color",
		"error", "status", "exit", "source", "promo", "discount", "coupon", "product", "bar", "qr", "iso", "airport",
		"tax", "region", "state", "program", "sample", "example", "which"},
	"pass":  {"boarding", "ski", "mountain", "season"},
	"token": {"max", "maximum", "min", "minimum", "input", "output", "total", "used", "prompt", "completion", "which"},
}

// ordinaryAfter maps a word to words that can follow it. Before one of these, the word does not denote a secret: the
// field asks about a property of it, such as its length, or for another thing.
var ordinaryAfter = map[string][]string{
	"key": {"result", "point", "takeaway", "metric", "feature", "question", "word", "figure", "person", "contact",
		"stakeholder", "date", "finding", "message", "stage", "board", "binding", "size", "length"},
	"code": {"review", "reviewer", "style", "block", "snippet", "sample", "example", "base", "language", "editor",
		"owner", "coverage", "quality"},
	"pass":   {"rate", "percentage", "mark", "through"},
	"token":  {"count", "limit", "budget", "usage", "price", "symbol", "standard"},
	"pin":    {"color", "colour", "board", "location"},
	"secret": {"santa", "ingredient"},
}

// secretEnds are the ends of compound words: authtoken, clientsecret.
var secretEnds = []string{"token", "secret", "passwd", "pwd", "passcode", "apikey", "accesskey", "privatekey",
	"cardnumber"}

// foreignWords are words for a password in other languages. They are also found within words, because several of these
// languages do not separate words.
var foreignWords = []string{
	"mot de passe", "motdepasse", "contrasena", "senha", "haslo", "wachtwoord", "losenord", "adgangskode",
	"salasana", "parola", "sifre", "jelszo", "пароль", "пароля", "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호",
	"암호", "κωδικος", "סיסמה", "كلمة المرور", "पासवर्ड", "รหัสผ่าน", "mat khau", "kata sandi",
}

// keyMarks are prefixes of providers' keys and names of key files.
var keyMarks = []string{
	"sk-", "ghp_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "akia", "aiza", "id_rsa", "id_ed25519", ".pem",
	"begin openssh", "-----begin",
}

// mentionsKey reports whether a text contains the prefix of a key, or the name of a key file.
func mentionsKey(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(keyMarks, func(mark string) bool { return strings.Contains(text, mark) })
}

// unmarked returns a text in lower case, without accents, with one space in place of other characters.
func unmarked(text string) string {
	var b strings.Builder
	for _, r := range catalog.Plain(text) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case r == 'ł' || r == 'Ł':
			b.WriteByte('l')
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(unicode.ToLower(r))
		case !strings.HasSuffix(b.String(), " "):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// isForeignSecret reports whether a text contains a word for a password in a language other than English.
func isForeignSecret(text string) bool {
	plain := unmarked(text)
	return slices.ContainsFunc(foreignWords, func(w string) bool { return strings.Contains(plain, unmarked(w)) })
}

// solidWords are words that are also found if separators are between their letters: p a s s w o r d.
var solidWords = []string{"password", "passphrase", "passwort", "credential", "privatekey", "seedphrase"}

// asksSecret reports whether the name or the title of a field asks for a secret. The words key, code, pass and token
// denote secrets unless a word of ordinaryBefore precedes them, or a word of ordinaryAfter follows.
func asksSecret(name string) bool {
	words := wordsOf(name)
	for i, w := range words {
		if _, ok := ordinaryBefore[singularOf(w)]; ok && !isOrdinary(words, i) {
			return true
		}
	}
	return mentionsSecret(name)
}

// isOrdinary reports whether the word before or after it shows that the word does not denote a secret.
func isOrdinary(words []string, i int) bool {
	w := singularOf(words[i])
	return i > 0 && slices.Contains(ordinaryBefore[w], words[i-1]) ||
		i+1 < len(words) && slices.Contains(ordinaryAfter[w], singularOf(words[i+1]))
}

// singularOf returns the singular of a word.
func singularOf(w string) string {
	if w == "pass" || len(w) < 4 {
		return w
	}
	return strings.TrimSuffix(w, "s")
}

// mentionsSecret reports whether prose (a message, a description) asks for a secret.
func mentionsSecret(text string) bool {
	if strings.ContainsAny(text, "\u202d\u202e") { // these characters show text in reverse order
		runes := []rune(text)
		slices.Reverse(runes)
		if mentionsSecret(strings.NewReplacer("\u202d", "", "\u202e", "").Replace(string(runes))) {
			return true
		}
	}
	if mentionsKey(text) || isForeignSecret(text) {
		return true
	}
	words := wordsOf(text)
	for i, w := range words {
		if slices.Contains(secretWords, w) && !isOrdinary(words, i) {
			return true
		}
		if slices.ContainsFunc(secretEnds, func(end string) bool {
			return len(w) > len(end) &&
				strings.HasSuffix(w, end)
		}) {
			return true
		}
		for _, phrase := range secretPhrases {
			if i+len(phrase) <= len(words) && slices.Equal(singular(words[i:i+len(phrase)]), phrase) {
				return true
			}
		}
	}
	solid := strings.Join(words, "")
	return slices.ContainsFunc(solidWords, func(w string) bool { return strings.Contains(solid, w) })
}

// singular returns the words with the last one in the singular.
func singular(words []string) []string {
	words = slices.Clone(words)
	words[len(words)-1] = singularOf(words[len(words)-1])
	return words
}

// wordsOf splits a text into lower-case words, at characters that are neither letter nor digit and at changes of case.
// It omits hidden characters and replaces letters that look like Latin ones.
func wordsOf(text string) []string {
	var words []string
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			words = append(words, strings.ToLower(b.String()))
			b.Reset()
		}
	}
	was := rune(0)
	runes := []rune(catalog.Plain(text))
	for i, r := range runes {
		if tenon.IsHidden(r) || unicode.Is(unicode.Mn, r) {
			continue
		}
		next := rune(0)
		if i+1 < len(runes) {
			next = letter(runes[i+1])
			if strings.ContainsRune("@$", runes[i+1]) {
				next = 's' // pa$$word
			}
		}
		if plain := letter(r); plain != 0 {
			r = plain
		} else if mark := strings.IndexRune("01345@$", r); mark >= 0 && unicode.IsLetter(was) &&
			unicode.IsLetter(next) {
			r = rune("oleasas"[mark]) // p4ssw0rd
		}
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && (unicode.IsLower(was) || unicode.IsUpper(was) && unicode.IsLower(next)):
			end()
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		was = r
	}
	end()
	return words
}

// lookalikes replaces letters that look like Latin ones.
var lookalikes = strings.NewReplacer(
	"а", "a", "е", "e", "о", "o", "р", "p", "с", "c", "х", "x", "у", "y", "к", "k", "і", "i", "ѕ", "s", "ԁ", "d",
	"ɡ", "g", "ո", "n", "т", "t", "м", "m", "н", "h", "в", "b", "А", "A", "Е", "E", "О", "O", "Р", "P", "С", "C",
	"Х", "X", "К", "K", "І", "I", "Ѕ", "S", "Т", "T", "М", "M", "Н", "H", "В", "B", "ο", "o", "α", "a", "ρ", "p",
	"κ", "k", "τ", "t", "ι", "i", "Ο", "O", "Α", "A", "Ρ", "P", "Κ", "K", "Τ", "T", "Ι", "I", "Ν", "N", "Ε", "E",
	"ı", "i",
	"ᴀ", "a", "ʙ", "b", "ᴄ", "c", "ᴅ", "d", "ᴇ", "e", "ꜰ", "f", "ɢ", "g", "ʜ", "h", "ɪ", "i", "ᴋ", "k", "ʟ", "l",
	"ᴍ", "m", "ɴ", "n", "ᴏ", "o", "ᴘ", "p", "ʀ", "r", "ꜱ", "s", "ᴛ", "t", "ᴜ", "u", "ᴡ", "w", "ʏ", "y", "ᴢ", "z")

// letter returns a letter, or the Latin letter that it resembles. It returns 0 if r is not a letter.
func letter(r rune) rune {
	if r >= '！' && r <= '～' { // full-width forms
		r -= '！' - '!'
	}
	if !unicode.IsLetter(r) {
		return 0
	}
	for _, l := range lookalikes.Replace(string(r)) {
		return l
	}
	return r
}
