// Exports a function of NVML's C interface. All other symbols of the library are hidden.
#pragma once

#define EXPORTED extern "C" __attribute__((visibility("default")))
