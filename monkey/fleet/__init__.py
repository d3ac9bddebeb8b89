"""The fleet port, the local fleet, and what agents say of the machine they run on."""
