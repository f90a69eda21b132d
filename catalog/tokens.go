package catalog

import "strings"

var stopWords = wordSet(`a an the of to and or in on for with is are be i me my you your it this that from by as at
can could would please do does what how if we our us have has will about which who when
where into not no yes any some them their its was were been so`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// tokens splits a text into the words that search knows: camel case apart, lower
// case, Latin letters and digits together, each Han character alone, stop words
// left out, endings cut off.
func tokens(text string) []string {
	var list []string
	word := make([]byte, 0, 32)
	flush := func() {
		if len(word) > 0 && !stopWords[string(word)] {
			list = append(list, stem(string(word)))
		}
		word = word[:0]
	}
	for i, r := range text {
		switch {
		case r >= 'A' && r <= 'Z':
			if i > 0 && (isLower(text[i-1]) || isUpper(text[i-1]) && i+1 < len(text) && text[i+1] >= 'a' && text[i+1] <= 'z') {
				flush()
			}
			word = append(word, byte(r)+'a'-'A')
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			word = append(word, byte(r))
		case r >= 0x4e00 && r <= 0x9fff:
			flush()
			list = append(list, string(r))
		default:
			flush()
		}
	}
	flush()
	return list
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// endings are tried in this order; the first that leaves three letters is cut.
var endings = []string{"ingly", "edly", "ings", "ing", "ies", "ied", "es", "ed", "s"}

func stem(w string) string {
	for _, e := range endings {
		if len(w) >= len(e)+3 && strings.HasSuffix(w, e) {
			w = w[:len(w)-len(e)]
			if e == "ies" || e == "ied" {
				w += "y"
			}
			return w
		}
	}
	return w
}
