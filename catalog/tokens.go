package catalog

import (
	"strings"

	"github.com/kljensen/snowball/english"
)

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

// tokens returns the words of a text, see [splitter.words].
func tokens(text string) []string { return splitter(nil).words(text) }

// splitter splits texts. If it is a map, it caches the stems of words, since the texts of one index have few
// different words.
type splitter map[string]string

// stem returns the stem of a word.
func (x splitter) stem(w []byte) string {
	if s, ok := x[string(w)]; ok {
		return s
	}
	s := stem(string(w))
	if x != nil && len(x) < maxStems {
		x[string(w)] = s
	}
	return s
}

// maxStems bounds the number of stems in a splitter.
const maxStems = 1 << 16

// words splits a text into search words. It splits camel case, converts to lower case, keeps Latin letters and digits
// together, makes each Han character a word, leaves out stop words, and reduces words to their stems.
func (x splitter) words(text string) []string {
	var list []string
	word := make([]byte, 0, 32)
	flush := func() {
		if len(word) > 0 && !stopWords[string(word)] {
			list = append(list, x.stem(word))
		}
		word = word[:0]
	}
	for i, r := range text {
		switch {
		case r >= 'A' && r <= 'Z':
			if i > 0 && (isLower(text[i-1]) || isUpper(text[i-1]) && i+1 < len(text) && text[i+1] >= 'a' &&
				text[i+1] <= 'z') {
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

// stem returns the stem of an English word by Snowball, so that "studies" finds "studying". Words with a digit stay.
func stem(w string) string {
	if strings.ContainsAny(w, "0123456789") {
		return w
	}
	return english.Stem(w, true)
}
