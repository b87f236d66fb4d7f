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
	data *[]byte // A pointer, which formats of structures around it do not follow.
}

// NewSecret makes a secret of a text, or of any bytes.
func NewSecret[T string | []byte](value T) Secret {
	data := []byte(value)
	return Secret{&data}
}

// Bytes returns the secret itself.
func (s Secret) Bytes() []byte {
	if s.data == nil {
		return nil
	}
	return *s.data
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
}

type itemLine struct {
	Item
	Value json.RawMessage `json:"value"`
}

// IsSet says whether it has a value or a default.
func (i Item) IsSet() bool { return i.Type != "" }

// Value is ErrNotFound if there is none, and ErrHidden if it is a secret that was not asked for, or sealed.
func (i Item) Value() (any, error) {
	name := i.Collection + "/" + i.Key
	switch {
	case i.hasValue:
		return i.value, nil
	case i.Sealed:
		return nil, failure(ErrHidden, "%s is sealed, and the vault is locked: prefs unlock opens it.", name)
	case i.Type == "secret":
		return nil, failure(ErrHidden, "%s is a secret: read it with Secret, or open with Reveal.", name)
	case i.IsSet():
		return nil, failure(ErrHidden, "This item of %s is the answer to a change, without a value: read it with Get.", name)
	}
	return nil, failure(ErrNotFound, "There is no %s.", name)
}

func (l itemLine) item() (Item, error) {
	item := l.Item
	if l.Value == nil {
		return item, nil
	}
	tree, err := numbers(l.Value)
	if err == nil {
		item.value, err = decode(tree)
	}
	item.hasValue = err == nil
	return item, err
}

// numbers parses JSON; its numbers stay as they are written.
func numbers(text []byte) (tree any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&tree)
	return tree, err
}

var from2001 = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

func decode(tree any) (any, error) {
	switch tree := tree.(type) {
	case json.Number:
		return number(tree), nil
	case []any:
		list := make([]any, len(tree))
		for index, element := range tree {
			var err error
			if list[index], err = decode(element); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		if len(tree) == 1 {
			for mark, content := range tree {
				if marks[mark] {
					return decodeMarked(mark, content, tree)
				}
			}
		}
		return decodeMembers(tree)
	}
	return tree, nil
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
	switch tree := tree.(type) {
	case json.Number:
		return number(tree)
	case []any:
		for index, element := range tree {
			tree[index] = plain(element)
		}
	case map[string]any:
		for name, element := range tree {
			tree[name] = plain(element)
		}
	}
	return tree
}

var marks = map[string]bool{
	"$null": true, "$int": true, "$double": true, "$string": true, "$data": true, "$date": true, "$url": true, "$uuid": true, "$json": true,
	"$secret": true, "$dict": true,
}

func decodeMembers(tree map[string]any) (any, error) {
	members := make(map[string]any, len(tree))
	for name, element := range tree {
		value, err := decode(element)
		if err != nil {
			return nil, err
		}
		members[name] = value
	}
	return members, nil
}

func decodeMarked(mark string, content any, whole any) (any, error) {
	text, isText := content.(string)
	switch {
	case mark == "$null":
		return nil, nil
	case mark == "$int":
		return decode(json.Number(text))
	case mark == "$double":
		return map[string]float64{"inf": math.Inf(1), "-inf": math.Inf(-1)}[text] + zeroOrNaN(text), nil
	case mark == "$data":
		return base64.StdEncoding.DecodeString(text)
	case mark == "$date" && isText:
		if date, err := time.Parse(time.RFC3339, text); err == nil {
			return date, nil
		}
		return Marked{whole}, nil
	case mark == "$url" && isText:
		return url.Parse(text)
	case mark == "$date", mark == "$url":
		return Marked{whole}, nil
	case mark == "$uuid":
		return UUID(text), nil
	case mark == "$json" && isText:
		tree, err := numbers([]byte(text))
		return JSON{plain(tree)}, err
	case mark == "$json":
		value, err := decode(content)
		return JSON{value}, err
	case mark == "$secret" && isText:
		return NewSecret(text), nil
	case mark == "$secret":
		data, err := decode(content)
		bytes, ok := data.([]byte)
		if err == nil && !ok {
			err = fmt.Errorf("a secret is neither text nor data")
		}
		return NewSecret(bytes), err
	case mark == "$dict":
		members, _ := content.(map[string]any)
		return decodeMembers(members)
	}
	return content, nil
}

func zeroOrNaN(text string) float64 {
	if strings.HasSuffix(text, "inf") {
		return 0
	}
	return math.NaN()
}

// copied has lists, maps and bytes of its own.
func copied(value any) any {
	switch value := value.(type) {
	case []byte:
		return append([]byte{}, value...)
	case []any:
		list := make([]any, len(value))
		for index, element := range value {
			list[index] = copied(element)
		}
		return list
	case map[string]any:
		members := make(map[string]any, len(value))
		for name, element := range value {
			members[name] = copied(element)
		}
		return members
	}
	return value
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
