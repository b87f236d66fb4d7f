package coffer

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Request sends any request of the protocol, and returns `ok` of its answer.
func (s *Settings) Request(do string, members map[string]any) (json.RawMessage, error) {
	isChange := strings.Contains(" set unset update transaction ", " "+do+" ")
	unanswered := failure(ErrUnavailable, "prefs serve has not answered for %v; a change may still be made.", s.patience)
	for {
		child, err := s.connected()
		if err != nil {
			return nil, err
		}
		answers := make(chan line, 1)
		take := func(answer line) {
			s.lock.Lock()
			defer s.lock.Unlock()
			answers <- answer
			if s.problem == unanswered {
				s.problem = nil
			}
		}
		if err := child.send(do, members, take); errors.Is(err, ErrUnavailable) {
			continue // It has just ended: this waits for the next one.
		} else if err != nil {
			return nil, err
		}
		late := time.NewTimer(s.patience)
		select {
		case answer := <-answers:
			late.Stop()
			if answer.Error == nil {
				return answer.OK, nil
			}
			if isChange || !errors.Is(answer.Error, ErrUnavailable) {
				return nil, answer.Error
			}
		case <-late.C:
			s.lock.Lock()
			defer s.lock.Unlock()
			if s.problem == nil && len(answers) == 0 {
				s.problem = unanswered
			}
			return nil, unanswered
		}
	}
}

// Close ends the child. Values can still be read.
func (s *Settings) Close() {
	s.close.Do(func() { close(s.closing) })
	s.lock.RLock()
	child := s.child
	s.lock.RUnlock()
	if child != nil {
		_ = child.input.Close()
	}
	select {
	case <-s.over:
	case <-time.After(5 * time.Second):
		if child != nil {
			_ = child.command.Process.Kill()
		}
	}
}

func (s *Settings) connected() (*child, error) {
	late := time.NewTimer(s.patience)
	defer late.Stop()
	for {
		s.lock.RLock()
		current, child := s.current, s.child
		s.lock.RUnlock()
		select {
		case <-s.closing:
			return nil, failure(ErrUnavailable, "The settings are closed.")
		default:
		}
		select {
		case <-current:
			if child != nil {
				return child, nil
			}
		case <-s.closing:
		case <-s.over:
			return nil, failure(ErrUnavailable, "prefs serve could not be started.")
		case <-late.C:
			err := failure(ErrUnavailable, "prefs serve has not sent the values for %v.", s.patience)
			if problem := s.Problem(); problem != nil {
				err.Message += " " + problem.Error()
			}
			return nil, err
		}
	}
}

// request is Request with `ok` read as a T.
func request[T any](s *Settings, do string, members map[string]any) (T, error) {
	var answer T
	text, err := s.Request(do, members)
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}
