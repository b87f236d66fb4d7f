// libcurl, and what Swift cannot import of it: its functions with any number of arguments.
#include <curl/curl.h>
