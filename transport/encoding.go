package transport

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tenonhq/tenon"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Encoded wraps r and w for a peer that does not use UTF-8. The returned reader and writer use UTF-8. label is one of
// the labels of the WHATWG Encoding Standard (section 4.2), such as latin-1, utf-16le or shift_jis. Case, hyphens and
// underscores are ignored. For UTF-8 and "", r and w are returned unchanged. Invalid input becomes U+FFFD. Each Write
// must consist of complete JSON texts. A character that the encoding does not have is written as a JSON escape. The
// error has code config.
func Encoded(label string, r io.Reader, w io.Writer) (io.Reader, io.Writer, error) {
	e, err := encodingOf(label)
	if err != nil {
		return nil, nil, err
	}
	r, w = recode(e, r, w)
	return r, w, nil
}

// recode is [Encoded] for a resolved encoding; e is nil for UTF-8.
func recode(e encoding.Encoding, r io.Reader, w io.Writer) (io.Reader, io.Writer) {
	if e == nil {
		return r, w
	}
	out := e
	if e == utf16LE { // a byte order mark is accepted but not written
		out = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	}
	return transform.NewReader(r, e.NewDecoder()), &encoder{w: w, t: out.NewEncoder().Transformer}
}

// IsEncoding reports whether [Encoded] knows the label.
func IsEncoding(label string) bool {
	_, err := encodingOf(label)
	return err == nil
}

var utf16LE = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)

// encodingOf returns the encoding of a label, or nil for UTF-8.
func encodingOf(label string) (encoding.Encoding, error) {
	plain := strings.NewReplacer("-", "", "_", "", ":", "").Replace(strings.ToLower(strings.TrimSpace(label)))
	if plain == "" && label != "" {
		plain = "-"
	}
	// The labels of the standard in lower case, without hyphens, underscores and colons.
	for _, known := range []struct {
		labels string
		e      encoding.Encoding
	}{
		{"utf8 unicode11utf8 unicode20utf8 xunicode20utf8", nil},
		{"utf16le utf16 unicode csunicode iso10646ucs2 ucs2 unicodefeff", utf16LE},
		{"utf16be unicodefffe", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
		{"windows1252 cp1252 xcp1252 latin1 l1 ascii usascii ansix3.41968 iso88591 iso885911987 isoir100 csisolatin1 " +
			"cp819 ibm819", charmap.Windows1252},
		{"windows1250 cp1250 xcp1250", charmap.Windows1250},
		{"windows1251 cp1251 xcp1251", charmap.Windows1251},
		{"windows1253 cp1253 xcp1253", charmap.Windows1253},
		{"windows1254 cp1254 xcp1254 latin5 l5 iso88599 iso885991989 isoir148 csisolatin5", charmap.Windows1254},
		{"windows1255 cp1255 xcp1255", charmap.Windows1255},
		{"windows1256 cp1256 xcp1256", charmap.Windows1256},
		{"windows1257 cp1257 xcp1257", charmap.Windows1257},
		{"windows1258 cp1258 xcp1258", charmap.Windows1258},
		{"windows874 dos874 iso885911 tis620", charmap.Windows874},
		{"iso88592 iso885921987 isoir101 latin2 l2 csisolatin2", charmap.ISO8859_2},
		{"iso88593 iso885931988 isoir109 latin3 l3 csisolatin3", charmap.ISO8859_3},
		{"iso88594 iso885941988 isoir110 latin4 l4 csisolatin4", charmap.ISO8859_4},
		{"iso88595 iso885951988 isoir144 cyrillic csisolatincyrillic", charmap.ISO8859_5},
		{"iso88596 iso885961987 isoir127 arabic asmo708 csiso88596e csiso88596i csisolatinarabic ecma114 iso88596e " +
			"iso88596i", charmap.ISO8859_6},
		{"iso88597 iso885971987 isoir126 greek greek8 csisolatingreek ecma118 elot928 suneugreek", charmap.ISO8859_7},
		{"iso88598 iso885981988 isoir138 hebrew visual csiso88598e csisolatinhebrew iso88598e", charmap.ISO8859_8},
		{"iso88598i csiso88598i logical", charmap.ISO8859_8I},
		{"iso885910 isoir157 latin6 l6 csisolatin6", charmap.ISO8859_10},
		{"iso885913", charmap.ISO8859_13},
		{"iso885914", charmap.ISO8859_14},
		{"iso885915 csisolatin9 l9", charmap.ISO8859_15},
		{"iso885916", charmap.ISO8859_16},
		{"ibm866 866 cp866 csibm866", charmap.CodePage866},
		{"koi8r koi koi8 cskoi8r", charmap.KOI8R},
		{"koi8u koi8ru", charmap.KOI8U},
		{"macintosh mac csmacintosh xmacroman", charmap.Macintosh},
		{"xmaccyrillic xmacukrainian", charmap.MacintoshCyrillic},
		{"xuserdefined", charmap.XUserDefined},
		{"shiftjis sjis xsjis csshiftjis ms932 mskanji windows31j", japanese.ShiftJIS},
		{"eucjp xeucjp cseucpkdfmtjapanese", japanese.EUCJP},
		{"iso2022jp csiso2022jp", japanese.ISO2022JP},
		{"euckr cseuckr csksc56011987 isoir149 korean ksc56011987 ksc56011989 ksc5601 windows949", korean.EUCKR},
		{"gbk xgbk chinese csgb2312 csiso58gb231280 gb2312 gb231280 isoir58", simplifiedchinese.GBK},
		{"gb18030", simplifiedchinese.GB18030},
		{"big5 big5hkscs cnbig5 csbig5 xxbig5", traditionalchinese.Big5},
	} {
		if plain == "" {
			return nil, nil
		}
		for l := range strings.FieldsSeq(known.labels) {
			if l == plain {
				return known.e, nil
			}
		}
	}
	return nil, tenon.Errorf(tenon.CodeConfig,
		"'%s' is not the label of a character encoding; some are utf-8, latin-1, utf-16le, windows-1252, shift_jis",
		label)
}

// encoder writes UTF-8 in another encoding.
type encoder struct {
	w   io.Writer
	t   transform.Transformer
	buf []byte
}

// Write implements [io.Writer].
func (e *encoder) Write(p []byte) (int, error) {
	e.buf = e.buf[:0]
	if err := e.add(p); err != nil {
		return 0, err
	}
	if _, err := e.w.Write(e.buf); err != nil {
		return 0, err
	}
	if cap(e.buf) > keepBuffer {
		e.buf = nil
	}
	return len(p), nil
}

func (e *encoder) add(p []byte) error {
	var room [4096]byte
	for len(p) > 0 {
		wrote, read, err := e.t.Transform(room[:], p, true)
		e.buf = append(e.buf, room[:wrote]...)
		p = p[read:]
		switch {
		case err == nil && read == 0:
			return io.ErrNoProgress // unreachable
		case err == nil || err == transform.ErrShortDst:
			continue
		}
		r, size := utf8.DecodeRune(p)
		if r < utf8.RuneSelf { // an escape is ASCII; without this check, the recursion would not end
			return err
		}
		if err := e.add(escape(r)); err != nil {
			return err
		}
		p = p[size:]
	}
	return nil
}

// escape returns the JSON escape of a character (RFC 8259, section 7). Non-ASCII characters only occur in
// strings of a JSON text.
func escape(r rune) []byte {
	if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
		return fmt.Appendf(nil, `\u%04x\u%04x`, r1, r2)
	}
	return fmt.Appendf(nil, `\u%04x`, r)
}
