/* special.h: functions of one number that the C library lacks, in double precision. */
#pragma once

double special_lgamma(double x); /* log|gamma(x)|; thread-safe, unlike lgamma */
double special_digamma(double x);
