package coffer

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Secret is a secret, which is printed as its length.
type Secret struct {
	data **[]byte // No format follows two pointers, whatever structure is around them; most follow none, some one.
}

// NewSecret makes a secret of a text, or of any bytes.
func NewSecret[T string | []byte](value T) Secret {
	data := []byte(value)
	pointer := &data
	return Secret{&pointer}
}

// Bytes returns the secret itself.
func (s Secret) Bytes() []byte {
	if s.data == nil {
		return nil
	}
	return **s.data
}

// Text returns the secret itself.
func (s Secret) Text() string { return string(s.Bytes()) }

func (s Secret) String() string {
	if len(s.Bytes()) == 1 {
		return "<secret: 1 byte>"
	}
	return fmt.Sprintf("<secret: %d bytes>", len(s.Bytes()))
}

// GoString is String, so that no format prints the secret.
func (s Secret) GoString() string { return s.String() }

// MarshalJSON writes what String returns.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// UUID is a UUID, which is no string to the store.
type UUID string

// JSON is JSON that the store keeps as one text.
type JSON struct{ Value any }

// Marked is a value that Go has no type for, such as a relative URL, in the form of the protocol.
type Marked struct{ Form any }

// Item is a setting with what the store knows of it. One that is absent, or a default, has version 0.
type Item struct {
	Collection, Key                      string
	Version                              int64
	Type, Origin, Modified, Expires, Due string
	Problem                              string
	Sealed                               bool
	value                                any
	hasValue                             bool
	store                                string // The ID of the one that the version is of, or "".
	err                                  error  // Why nothing is known of it.
}

// IsSet says whether it has a value or a default.
func (i Item) IsSet() bool { return i.Type != "" }

// isKept says whether there is anything to know of it; a stored value that does not fit is a problem without a value.
func (i Item) isKept() bool { return i.IsSet() || i.Problem != "" }

// expect adds to a request the store that the version is of.
func (i Item) expect(members map[string]any) map[string]any {
	if i.store != "" {
		members["store"] = i.store
	}
	return members
}

// Value is ErrNotFound if there is none, ErrInvalidValue if the protocol has no form for it, and ErrHidden if it is a secret that was not asked
// for, or sealed.
func (i Item) Value() (any, error) {
	name := i.Collection + "/" + i.Key
	switch {
	case i.err != nil:
		return nil, i.err
	case i.hasValue:
		return i.value, nil
	case i.Sealed:
		return nil, failure(ErrHidden, "%s is sealed, and the vault is locked: prefs unlock opens it.", name)
	case i.Type == "secret":
		return nil, failure(ErrHidden, "%s is a secret: read it with Secret, or open with Reveal.", name)
	case i.IsSet() && i.Problem != "":
		return nil, failure(ErrInvalidValue, "%s has a value that cannot be read: %s.", name, i.Problem)
	case i.IsSet():
		return nil, failure(ErrHidden, "This item of %s is the answer to a change, without a value: read it with Get.", name)
	case i.Problem != "":
		return nil, failure(ErrNotFound, "There is no %s: %s.", name, i.Problem)
	}
	return nil, failure(ErrNotFound, "There is no %s.", name)
}

// UnmarshalJSON reads an item in the form of the protocol.
func (i *Item) UnmarshalJSON(text []byte) error {
	type members Item // Without this method.
	var line struct {
		members
		Value json.RawMessage
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	*i = Item(line.members)
	if line.Value == nil {
		return nil
	}
	tree, err := numbers(line.Value)
	i.value, i.hasValue = decode(tree), true
	return err
}

// numbers parses JSON; its numbers stay as they are written.
func numbers(text []byte) (tree any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&tree)
	return tree, err
}

var from2001 = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

func decode(tree any) any {
	switch tree := tree.(type) {
	case json.Number:
		return number(tree)
	case map[string]any:
		if len(tree) == 1 {
			for mark, content := range tree {
				if marks[mark] {
					return decodeMarked(mark, content, tree)
				}
			}
		}
	}
	return mapped(tree, decode)
}

// mapped has the elements of a list or a map changed.
func mapped(tree any, change func(any) any) any {
	switch tree := tree.(type) {
	case []any:
		list := make([]any, len(tree))
		for index, element := range tree {
			list[index] = change(element)
		}
		return list
	case map[string]any:
		members := make(map[string]any, len(tree))
		for name, element := range tree {
			members[name] = change(element)
		}
		return members
	}
	return tree
}

// number is an int64, a uint64 or a float64, if that is exact enough for what is written.
func number(text json.Number) any {
	if number, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return number
	}
	if number, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		return number
	}
	if number, err := text.Float64(); err == nil && strings.ContainsAny(string(text), ".eE") {
		return number
	}
	return text
}

// plain is the contents of a JSON, in which names have no meaning.
func plain(tree any) any {
	if text, ok := tree.(json.Number); ok {
		return number(text)
	}
	return mapped(tree, plain)
}

var marks = map[string]bool{
	"$null": true, "$int": true, "$double": true, "$string": true, "$data": true, "$date": true, "$url": true, "$uuid": true, "$json": true,
	"$secret": true, "$dict": true,
}

// decodeMarked returns a Marked where Go has no type for the value.
func decodeMarked(mark string, content any, whole any) any {
	text, isText := content.(string)
	switch {
	case mark == "$null":
		return nil
	case mark == "$int":
		return number(json.Number(text))
	case mark == "$double":
		if number, err := strconv.ParseFloat(text, 64); err == nil {
			return number
		}
		return math.NaN()
	case mark == "$string":
		return content
	case mark == "$data":
		if data, err := base64.StdEncoding.DecodeString(text); err == nil {
			return data
		}
	case mark == "$date" && isText:
		if date, err := time.Parse(time.RFC3339, text); err == nil {
			return date
		}
	case mark == "$date":
		seconds, err := strconv.ParseFloat(fmt.Sprint(decode(content)), 64)
		date := time.UnixMicro(from2001.UnixMicro() + int64(math.Round(seconds*1e6))).UTC()
		if err == nil && math.Abs(seconds) < 1e11 && date.Year() > 0 && date.Year() < 10_000 {
			return date
		}
	case mark == "$url" && isText:
		if address, err := url.Parse(text); err == nil {
			return address
		}
	case mark == "$uuid":
		return UUID(text)
	case mark == "$json" && isText:
		if tree, err := numbers([]byte(text)); err == nil {
			return JSON{plain(tree)}
		}
	case mark == "$json":
		return JSON{decode(content)}
	case mark == "$secret" && isText:
		return NewSecret(text)
	case mark == "$secret":
		if data, ok := decode(content).([]byte); ok {
			return NewSecret(data)
		}
		return Marked{} // Without what may be a secret.
	case mark == "$dict":
		return mapped(content, decode)
	}
	return Marked{whole}
}

// copied has lists, maps and bytes of its own.
func copied(value any) any {
	if data, ok := value.([]byte); ok {
		return append([]byte{}, data...)
	}
	return mapped(value, copied)
}

// encode returns a value in the form of the protocol.
func encode(value any) (any, error) {
	switch value := value.(type) {
	case string:
		if !utf8.ValidString(value) {
			return nil, failure(ErrInvalidValue, "A string that is not UTF-8 cannot be stored: use []byte.")
		}
		return value, nil
	case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return value, nil
	case float64:
		switch {
		case math.IsNaN(value):
			return map[string]string{"$double": "nan"}, nil
		case math.IsInf(value, 0):
			return map[string]string{"$double": strings.ToLower(strings.TrimPrefix(fmt.Sprint(value), "+"))}, nil
		case value == math.Trunc(value) && math.Abs(value) < 1e21:
			return json.Number(strconv.FormatFloat(value, 'f', 1, 64)), nil // With a point, or it would be an integer.
		}
		return value, nil
	case []byte:
		return map[string]string{"$data": base64.StdEncoding.EncodeToString(value)}, nil
	case time.Time:
		if value.Nanosecond()%1_000_000 != 0 {
			return map[string]any{"$date": float64(value.Unix()-from2001.Unix()) + float64(value.Nanosecond())/1e9}, nil
		}
		return map[string]string{"$date": value.UTC().Format("2006-01-02T15:04:05.000Z")}, nil
	case *url.URL:
		if value == nil {
			return nil, failure(ErrWrongType, "A URL that is nil cannot be stored.")
		}
		return map[string]string{"$url": value.String()}, nil
	case UUID:
		return map[string]string{"$uuid": string(value)}, nil
	case JSON:
		text, err := json.Marshal(value.Value)
		return map[string]string{"$json": string(text)}, err
	case Secret:
		if text := value.Text(); utf8.ValidString(text) {
			return map[string]string{"$secret": text}, nil
		}
		data, err := encode(value.Bytes())
		return map[string]any{"$secret": data}, err
	case Marked:
		return value.Form, nil
	case []any:
		list := make([]any, len(value))
		for index, element := range value {
			var err error
			if list[index], err = encode(element); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		members := make(map[string]any, len(value))
		isMark := false
		for name, element := range value {
			var err error
			if !utf8.ValidString(name) {
				return nil, failure(ErrInvalidValue, "A dictionary with a key that is not UTF-8 cannot be stored.")
			}
			if members[name], err = encode(element); err != nil {
				return nil, err
			}
			isMark = len(value) == 1 && marks[name]
		}
		if isMark {
			return map[string]any{"$dict": members}, nil
		}
		return members, nil
	}
	return nil, failure(ErrWrongType, "A %T cannot be stored.", value)
}
