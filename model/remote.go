package model

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/tenonhq/tenon"
)

// fileID begins a [tenon.Part.URI] that is the id of a file at the provider.
const fileID = "file-id:"

// The kinds of [Remote].
const (
	RemoteImage    = "image"
	RemoteDocument = "document"
	RemoteAudio    = "audio"
	RemoteVideo    = "video"
)

// Remote is an image or file that the provider reads itself.
type Remote struct {
	Kind string // RemoteImage and so on
	MIME string // may be empty
	URL  string // an address, or
	ID   string // the id of a file at the provider
}

// RemoteOf returns the address or the file id in a block. ok is false if the block has neither.
func RemoteOf(c tenon.Content) (r Remote, ok bool) {
	if c.Remote == "" {
		return r, false
	}
	r = Remote{Kind: RemoteDocument, MIME: strings.ToLower(c.MimeType), URL: c.Remote}
	if id, ok := strings.CutPrefix(c.Remote, fileID); ok {
		r.ID, r.URL = id, ""
	}
	for _, kind := range []string{RemoteImage, RemoteAudio, RemoteVideo} {
		if strings.HasPrefix(r.MIME, kind+"/") {
			r.Kind = kind
		}
	}
	if c.Type == tenon.ContentImage {
		r.Kind = RemoteImage
	}
	return r, true
}

// Remote returns the address or the file id in a block if requests to the model name it; see [Config.Takes].
func (c Config) Remote(block tenon.Content) (Remote, bool) {
	r, ok := RemoteOf(block)
	return r, ok && c.Takes(r)
}

// RemoteKey is the part of a cache key of messages that says which addresses and file ids they contain.
func (q Quirks) RemoteKey() string {
	return fmt.Sprintf(" addresses=%t video=%t", q.Addresses, q.Video)
}

// Takes reports whether requests to the model name such an image or file. Otherwise a note replaces it. Sources: the
// pages "Vision", "PDF support" and "Files" of Anthropic's documentation, "Images and vision" and "File inputs" of
// OpenAI's, "File input methods" and "Video understanding" of the Gemini API's, and the type S3Location of Bedrock.
func (c Config) Takes(r Remote) bool {
	q := c.ResolvedQuirks()
	image, document := r.Kind == RemoteImage && q.Images, r.Kind == RemoteDocument && q.Documents
	switch c.Wire() {
	case WireChat:
		return image && r.Web() && q.Addresses || document && r.ID != ""
	case WireResponses:
		return (image || document) && (r.ID != "" || r.Web() && q.Addresses)
	case WireAnthropic: // the clouds have no files, and read no addresses
		return (image || document) && c.Provider != providerVertex && (r.ID != "" || r.Web() && q.Addresses)
	case WireGemini:
		return r.MIME != "" && q.Addresses && r.Web() || r.video() || r.own() || strings.HasPrefix(r.URL, "gs://") ||
			r.ID != "" && c.Provider != providerVertex
	case WireBedrock:
		return (image || document || r.Kind == RemoteVideo && q.Video) && strings.HasPrefix(r.URL, "s3://") &&
			r.Format() != ""
	}
	return false
}

// video reports whether the address is a video of YouTube, which Gemini reads.
func (r Remote) video() bool {
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "https" {
		return false
	}
	name := strings.TrimPrefix(u.Hostname(), "www.")
	return name == "youtu.be" || name == "youtube.com" || name == "m.youtube.com"
}

// own reports whether the address names a file at Gemini's API.
func (r Remote) own() bool {
	u, err := url.Parse(r.URL)
	return err == nil && u.Host == "generativelanguage.googleapis.com" && strings.Contains(u.Path, "/files/")
}

// hasFileID reports whether a message of a request has the id of a file.
func hasFileID(req *tenon.Request) bool {
	for _, m := range req.Messages {
		for i := range m.Parts {
			if strings.HasPrefix(m.Parts[i].URI, fileID) {
				return true
			}
		}
	}
	return false
}

// Web reports whether the address is a web address.
func (r Remote) Web() bool {
	return strings.HasPrefix(r.URL, "https://") || strings.HasPrefix(r.URL, "http://")
}

// Format returns the subtype of the MIME type in Bedrock's words, or "". Source: the types ImageFormat, DocumentFormat
// and VideoFormat of aws-sdk-go-v2's bedrockruntime.
func (r Remote) Format() string {
	_, format, _ := strings.Cut(r.MIME, "/")
	switch format {
	case "jpg":
		return "jpeg"
	case "quicktime":
		return "mov"
	case "x-matroska":
		return "mkv"
	case "3gpp":
		return "three_gp"
	case "x-ms-wmv":
		return "wmv"
	}
	return format
}

// GeminiURI returns the address for Gemini, which names its own files by address. An id is files/NAME, or the NAME.
func (r Remote) GeminiURI() string {
	if r.ID == "" {
		return r.URL
	}
	return "https://generativelanguage.googleapis.com/v1beta/files/" + strings.TrimPrefix(r.ID, "files/")
}

// note returns a text that replaces a block that is not sent to the model.
func (r Remote) note() string {
	if r.ID != "" {
		return fmt.Sprintf("[%s omitted: this model does not take the file id %s]", r.Kind, Visible(r.ID))
	}
	return fmt.Sprintf("[%s at %s: this model does not read it]", r.Kind, Visible(r.URL))
}
