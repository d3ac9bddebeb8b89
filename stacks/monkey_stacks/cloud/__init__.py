"""What all clouds share: scaling, capacity, cost, departures of rented machines."""
