// The D-Bus of libsystemd.
#ifndef COFFER_CSYSTEMD_H
#define COFFER_CSYSTEMD_H

#include <systemd/sd-bus.h>

#endif
